"""Nested tags with random names, for a language model: "<ab><xyz></xyz></ab>".

The "XML" of Jozefowicz, Zaremba & Sutskever 2015: only the closing tags can be predicted, by what was opened before.
"""

from __future__ import annotations

from string import ascii_lowercase

import numpy as np

from seqloom.data.generators.sampling import check_range
from seqloom.types import Example

OPENS = 0.5  # the probability that a tag is opened, where one may be and one is open


def xml(count: int, seed: int = 1, *, tags: int = 5, depth: int = 4, longest: int = 8) -> list[Example]:
    """`count` lines of so many tags, at most `depth` open at once, names of two to `longest` letters."""
    check_range("xml", "count", count, 1)
    check_range("xml", "tags", tags, 1, 1_000)
    check_range("xml", "depth", depth, 1, 100)
    check_range("xml", "longest", longest, 2, 100)
    random = np.random.default_rng(seed)
    return [Example(None, line(random, tags, depth, longest)) for _ in range(count)]


def line(random: np.random.Generator, tags: int, depth: int, longest: int) -> str:
    opened: list[str] = []
    text, left = "", tags
    while left or opened:
        if left and (not opened or (len(opened) < depth and random.random() < OPENS)):
            letters = random.integers(0, 26, random.integers(2, longest, endpoint=True))
            opened.append("".join(ascii_lowercase[each] for each in letters))
            text, left = f"{text}<{opened[-1]}>", left - 1
        else:
            text += f"</{opened.pop()}>"
    return text
