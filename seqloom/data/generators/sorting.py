"""Sorting: "0.52 0.07 0.31" -> "1 2 0", the places of numbers in ascending order.

Vinyals, Bengio & Kudlur 2016, section 4.3: N numbers, uniform between 0 and 1. Equal ones keep their order.
"""

from __future__ import annotations

import numpy as np

from seqloom.data.generators.points import GRID, as_source, as_target, check_numbers
from seqloom.types import Example


def sorting(count: int, seed: int = 1, *, shortest: int = 5, longest: int = 5) -> list[Example]:
    """`count` lists of shortest to longest numbers; a smaller count gives the first of them."""
    check_numbers("sorting", count, shortest, longest, 1)
    random = np.random.default_rng(seed)
    drawn = (random.integers(0, GRID, int(random.integers(shortest, longest, endpoint=True))) for _ in range(count))
    return [
        Example(as_source(values[:, None]), as_target(np.argsort(values, kind="stable").tolist())) for values in drawn
    ]
