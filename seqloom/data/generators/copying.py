"""Copying: a random string and the same once more, or backwards: "dacb" -> "dacb" or "bcad"."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from string import ascii_lowercase

import numpy as np

from seqloom.data.generators.drawing import distinct, expect
from seqloom.types import Example


def copying(
    count: int, seed: int = 1, *, symbols: int = 8, shortest: int = 1, longest: int = 10, reverse: bool = False
) -> list[Example]:
    """So many different strings of so many letters; each length is as likely.

    Fewer of the same seed are the first of them.
    """
    expect("copying", "symbols", symbols, 2, len(ascii_lowercase))
    expect("copying", "shortest", shortest, 1)
    expect("copying", "longest", longest, shortest)
    strings = sum(symbols**length for length in range(shortest, longest + 1))
    expect("copying", "count", count, 1, max(strings // 4, 1))
    return list(islice(distinct(draws(seed, symbols, shortest, longest, reverse)), count))


def draws(seed: int, symbols: int, shortest: int, longest: int, reverse: bool) -> Iterator[Example]:
    """Strings without end; the same may come twice."""
    random = np.random.default_rng(seed)
    while True:
        length = int(random.integers(shortest, longest, endpoint=True))
        text = "".join(ascii_lowercase[index] for index in random.integers(0, symbols, size=length))
        yield Example(text, text[::-1] if reverse else text)
