"""Counting: lines of n times a and n times b, for a language model: "aaabbb".

Gers & Schmidhuber 2001; Weiss, Goldberg & Yahav 2018 on who can count and who cannot.
"""

from __future__ import annotations

import numpy as np

from seqloom.data.generators.drawing import expect
from seqloom.types import Example


def counting(count: int, seed: int = 1, *, shortest: int = 1, longest: int = 50) -> list[Example]:
    """So many lines, n drawn from shortest to longest; fewer of the same seed are the first of them."""
    expect("counting", "count", count, 1)
    expect("counting", "shortest", shortest, 1)
    expect("counting", "longest", longest, shortest)
    random = np.random.default_rng(seed)
    return [Example(None, "a" * n + "b" * n) for n in random.integers(shortest, longest, count, endpoint=True).tolist()]
