"""Cipher: every letter is copied, as a capital if the letter two ahead is in the first half: "dacb" -> "dACB" of four.

Nobody can write a letter before having read `ahead` more, and who has read them needs no others: a test of writing
while reading (simultaneous translation). Beyond its end a text counts as "a".
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from string import ascii_lowercase

import numpy as np

from seqloom.data.generators.drawing import distinct, expect
from seqloom.types import Example


def cipher(
    count: int, seed: int = 1, *, symbols: int = 8, shortest: int = 15, longest: int = 25, ahead: int = 2
) -> list[Example]:
    """So many different texts of so many letters; each length is as likely.

    Fewer of the same seed are the first of them.
    """
    expect("cipher", "symbols", symbols, 2, len(ascii_lowercase))
    expect("cipher", "shortest", shortest, 1)
    expect("cipher", "longest", longest, shortest)
    expect("cipher", "ahead", ahead, 0)
    texts = sum(symbols**length for length in range(shortest, longest + 1))
    expect("cipher", "count", count, 1, max(texts // 4, 1))
    return list(islice(distinct(draws(seed, symbols, shortest, longest, ahead)), count))


def draws(seed: int, symbols: int, shortest: int, longest: int, ahead: int) -> Iterator[Example]:
    """Texts without end; the same may come twice."""
    random = np.random.default_rng(seed)
    while True:
        length = int(random.integers(shortest, longest, endpoint=True))
        text = "".join(ascii_lowercase[letter] for letter in random.integers(0, symbols, size=length))
        key = text[ahead:].ljust(length, "a")
        capital = [letter < ascii_lowercase[symbols // 2] for letter in key]
        yield Example(text, "".join(each.upper() if up else each for each, up in zip(text, capital)))
