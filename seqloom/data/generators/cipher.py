"""Cipher: a letter is copied, as a capital if the one two later is in the first half: "dacb" -> "dACB" of four letters.

To write a letter, exactly `ahead` more have to be read: a test of simultaneous translation. A text continues with "a"
beyond its end.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from string import ascii_lowercase

import numpy as np

from seqloom.data.generators.sampling import check_range, distinct
from seqloom.types import Example


def cipher(
    count: int, seed: int = 1, *, symbols: int = 8, shortest: int = 15, longest: int = 25, ahead: int = 2
) -> list[Example]:
    """`count` distinct texts of `shortest` to `longest` of `symbols` letters, all lengths equally likely.

    A smaller count gives the first of them.
    """
    check_range("cipher", "symbols", symbols, 2, len(ascii_lowercase))
    check_range("cipher", "shortest", shortest, 1)
    check_range("cipher", "longest", longest, shortest)
    check_range("cipher", "ahead", ahead, 0)
    texts = sum(symbols**length for length in range(shortest, longest + 1))
    check_range("cipher", "count", count, 1, max(texts // 4, 1))
    return list(islice(distinct(draws(seed, symbols, shortest, longest, ahead)), count))


def draws(seed: int, symbols: int, shortest: int, longest: int, ahead: int) -> Iterator[Example]:
    """Texts without end, not all distinct."""
    random = np.random.default_rng(seed)
    while True:
        length = int(random.integers(shortest, longest, endpoint=True))
        text = "".join(ascii_lowercase[letter] for letter in random.integers(0, symbols, size=length))
        key = text[ahead:].ljust(length, "a")
        capital = [letter < ascii_lowercase[symbols // 2] for letter in key]
        yield Example(text, "".join(each.upper() if up else each for each, up in zip(text, capital)))
