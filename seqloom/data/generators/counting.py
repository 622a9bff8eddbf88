"""Counting: lines of n times a and n times b, for a language model: "aaabbb".

Gers & Schmidhuber 2001; Weiss, Goldberg & Yahav 2018 on which networks can count.
"""

from __future__ import annotations

import numpy as np

from seqloom.data.generators.sampling import check_range
from seqloom.types import Example


def counting(count: int, seed: int = 1, *, shortest: int = 1, longest: int = 50) -> list[Example]:
    """`count` lines, n from shortest to longest; a smaller count gives the first of them."""
    check_range("counting", "count", count, 1)
    check_range("counting", "shortest", shortest, 1)
    check_range("counting", "longest", longest, shortest)
    random = np.random.default_rng(seed)
    return [Example(None, "a" * n + "b" * n) for n in random.integers(shortest, longest, count, endpoint=True).tolist()]
