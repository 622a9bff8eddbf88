"""Addition, digit by digit: "123+45 " -> "168".

Zaremba & Sutskever 2014 (learning to execute), without the program around it. An operand has one to `digits` digits,
all lengths equally likely. Sources are padded with spaces to one width, unless `padded` is false; targets need no
padding, since they have an end.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from seqloom.data.generators.sampling import check_range, distinct
from seqloom.types import Example


def addition(count: int, seed: int = 1, *, digits: int = 3, padded: bool = True) -> list[Example]:
    """`count` distinct sums; a smaller count gives the first of them."""
    check_range("addition", "digits", digits, 1, 18)
    check_range("addition", "count", count, 1, 10 ** (2 * digits) // 4)
    return list(islice(distinct(draws(seed, digits, padded)), count))


def draws(seed: int, digits: int, padded: bool) -> Iterator[Example]:
    """Sums without end, not all distinct."""
    random = np.random.default_rng(seed)
    width = 2 * digits + 1 if padded else 0
    while True:
        first, second = operand(random, digits), operand(random, digits)
        yield Example(f"{first}+{second}".ljust(width), str(first + second))


def operand(random: np.random.Generator, digits: int) -> int:
    """A number of one to `digits` digits."""
    return int(random.integers(0, 10 ** int(random.integers(1, digits, endpoint=True))))
