"""Copying: a random string is copied, or reversed: "dacb" -> "dacb" or "bcad"."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from string import ascii_lowercase

import numpy as np

from seqloom.data.generators.sampling import check_range, distinct
from seqloom.types import Example


def copying(
    count: int, seed: int = 1, *, symbols: int = 8, shortest: int = 1, longest: int = 10, reverse: bool = False
) -> list[Example]:
    """`count` distinct strings of `shortest` to `longest` of `symbols` letters, all lengths equally likely.

    A smaller count gives the first of them.
    """
    check_range("copying", "symbols", symbols, 2, len(ascii_lowercase))
    check_range("copying", "shortest", shortest, 1)
    check_range("copying", "longest", longest, shortest)
    strings = sum(symbols**length for length in range(shortest, longest + 1))
    check_range("copying", "count", count, 1, max(strings // 4, 1))
    return list(islice(distinct(draws(seed, symbols, shortest, longest, reverse)), count))


def draws(seed: int, symbols: int, shortest: int, longest: int, reverse: bool) -> Iterator[Example]:
    """Strings without end, not all distinct."""
    random = np.random.default_rng(seed)
    while True:
        length = int(random.integers(shortest, longest, endpoint=True))
        text = "".join(ascii_lowercase[index] for index in random.integers(0, symbols, size=length))
        yield Example(text, text[::-1] if reverse else text)
