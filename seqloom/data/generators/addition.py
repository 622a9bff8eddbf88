"""Addition, digit by digit: "123+45 " -> "168".

Zaremba & Sutskever 2014 (learning to execute), without the program around it. An operand has one to `digits` digits,
each number of them as likely. Sources are filled up with spaces to one width, unless `padded` is false; a target needs
no filling, since it has an end.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from seqloom.data.generators.drawing import distinct, expect
from seqloom.types import Example


def addition(count: int, seed: int = 1, *, digits: int = 3, padded: bool = True) -> list[Example]:
    """So many different sums; fewer of the same seed are the first of them."""
    expect("addition", "digits", digits, 1, 18)
    expect("addition", "count", count, 1, 10 ** (2 * digits) // 4)
    return list(islice(distinct(draws(seed, digits, padded)), count))


def draws(seed: int, digits: int, padded: bool) -> Iterator[Example]:
    """Sums without end; the same may come twice."""
    random = np.random.default_rng(seed)
    width = 2 * digits + 1 if padded else 0
    while True:
        first, second = operand(random, digits), operand(random, digits)
        yield Example(f"{first}+{second}".ljust(width), str(first + second))


def operand(random: np.random.Generator, digits: int) -> int:
    """A number of one to `digits` digits."""
    return int(random.integers(0, 10 ** int(random.integers(1, digits, endpoint=True))))
