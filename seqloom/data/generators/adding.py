"""The adding problem: "0.31,1 0.9,0 0.44,1 0.2,0" -> "0.75", the sum of the two marked values.

Hochreiter & Schmidhuber 1997, experiment 4, with values in [0, 1] as in Le, Jaitly & Hinton 2015. Each half has one
marker. Always answering 1 has a mean squared error of 1/6: the variance of the sum of two uniform values.
"""

from __future__ import annotations

import numpy as np

from seqloom.data.generators.sampling import check_range
from seqloom.types import Example

PARTS = 10_000  # values have four decimals, so that the target is the exact sum


def adding(count: int, seed: int = 1, *, length: int = 100) -> list[Example]:
    """`count` sequences of `length` pairs (value, marker); a smaller count gives the first of them."""
    check_range("adding", "count", count, 1)
    check_range("adding", "length", length, 2)
    random = np.random.default_rng(seed)
    return [draw(random, length) for _ in range(count)]


def draw(random: np.random.Generator, length: int) -> Example:
    values = random.integers(0, PARTS, size=length, endpoint=True)
    marked = {int(random.integers(0, length // 2)), int(random.integers(length // 2, length))}
    pairs = [f"{value / PARTS:g},{int(place in marked)}" for place, value in enumerate(values.tolist())]
    total = sum(int(values[place]) for place in marked)
    return Example(" ".join(pairs), f"{total / PARTS:g}")
