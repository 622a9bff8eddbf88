"""A shape and a picture of it, 14 x 14 pixels in black and white -> "ring", a ring somewhere, large or small."""

from __future__ import annotations

import numpy as np

from seqloom.data.generators.sampling import check_range
from seqloom.types import Example

SHAPES = ("disc", "ring", "square", "frame", "cross", "bar")


def shapes(count: int, seed: int = 1, *, size: int = 14, noise: float = 0.02) -> list[Example]:
    """`count` pictures of `size` x `size` pixels, each of them the other colour with probability `noise`; a smaller
    count gives the first of them.
    """
    check_range("shapes", "count", count, 1)
    check_range("shapes", "size", size, 8, 256)
    check_range("shapes", "noise", noise, 0, 0.5)
    found = []
    for number in range(count):
        random = np.random.default_rng((seed, number))
        name = SHAPES[int(random.integers(len(SHAPES)))]
        picture = drawn(name, random, size) ^ (random.random((size, size)) < noise)
        found.append(Example(name, picture.astype(np.uint8) * 255))
    return found


def drawn(name: str, random: np.random.Generator, size: int) -> np.ndarray:
    """A shape in the colour of its pixels.  bool (size, size)"""
    radius = int(random.integers(2, size // 4, endpoint=True))
    y, x = random.integers(radius, size - radius, 2)
    down, right = np.abs(np.indices((size, size)) - np.array([y, x])[:, None, None])
    far, round_ = np.maximum(down, right), np.hypot(down, right)
    if name in ("disc", "ring"):
        return (round_ <= radius) & ((name == "disc") | (round_ > radius - 1.5))
    if name in ("square", "frame"):
        return (far <= radius) & ((name == "square") | (far > radius - 1))
    arm = (far <= radius) & (np.minimum(down, right) == 0)
    return arm if name == "cross" else (down <= 1) & (right <= radius)
