"""Scenes: pictures of two objects and what is in them -> "a red circle left of a blue square".

The larger object is named first. Objects differ in colour or shape, stand anywhere, and do not overlap; the background
is grey and noisy. Sources are arrays, which `seqloom data scenes --out FILE` writes as PNG files beside the table.
"""

from __future__ import annotations

import numpy as np

from seqloom.data.generators.sampling import check_range
from seqloom.types import Example

COLOURS = {
    "red": (220, 40, 40),
    "green": (40, 170, 60),
    "blue": (50, 80, 220),
    "yellow": (235, 210, 50),
    "purple": (150, 60, 180),
    "white": (245, 245, 245),
}
SHAPES = ("circle", "square", "triangle", "cross")
RELATIONS = {"left of": (0, 1), "right of": (0, -1), "above": (1, 0), "below": (-1, 0)}  # from the first to the second
LARGE, SMALL = (11, 13), (6, 8)  # pixels across, of 32: least and most
MARGIN = 2.0  # how many times as far apart objects are along their relation as across it


def scenes(count: int, seed: int = 1, *, size: int = 32, noise: float = 8.0) -> list[Example]:
    """`count` pictures, `size` x `size` pixels of uint8; a smaller count gives the first of them."""
    check_range("scenes", "count", count, 1)
    check_range("scenes", "size", size, 24, 1024)
    check_range("scenes", "noise", noise, 0, 100)
    return [scene(np.random.default_rng((seed, number)), size, noise) for number in range(count)]


def scene(random: np.random.Generator, size: int, noise: float) -> Example:
    """One picture and its caption."""
    (colour, shape), (other_colour, other_shape) = kinds(random)
    large, small = (random.integers(*each, endpoint=True) * size / 32 for each in (LARGE, SMALL))
    relation = str(random.choice(list(RELATIONS)))
    centre, other_centre = places(random, size, (large, small), RELATIONS[relation])
    picture = np.full((size, size, 3), random.uniform(80, 150)) + random.normal(0, noise, (size, size, 3))
    for (row, column), width, name, kind in (
        (centre, large, colour, shape),
        (other_centre, small, other_colour, other_shape),
    ):
        inside = covered(kind, size, row, column, width)
        picture[inside] = np.array(COLOURS[name]) + random.normal(0, noise, (int(inside.sum()), 3))
    pixels = np.clip(picture.round(), 0, 255).astype(np.uint8)
    return Example(pixels, f"a {colour} {shape} {relation} a {other_colour} {other_shape}")


def kinds(random: np.random.Generator) -> tuple[tuple[str, str], tuple[str, str]]:
    """Colour and shape of two objects that are not alike."""
    while True:
        first, second = ((str(random.choice(list(COLOURS))), str(random.choice(SHAPES))) for _ in range(2))
        if first != second:
            return first, second


def places(
    random: np.random.Generator, size: int, widths: tuple[float, float], relation: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """The centres of two objects, row and column: within the picture, apart, and in no other relation as well."""
    room = sum(widths) / 2 + 1
    while True:
        first, second = (random.uniform(width / 2, size - width / 2, 2) for width in widths)
        along = float((second - first) @ np.array(relation))
        across = float(np.abs((second - first) @ np.array(relation[::-1])))
        if along >= room and along >= MARGIN * across:
            return first, second


def covered(shape: str, size: int, row: float, column: float, width: float) -> np.ndarray:
    """Which pixels an object covers.  (size, size)"""
    down, right = np.indices((size, size)) + 0.5 - np.array([row, column])[:, None, None]
    half = width / 2
    inside = (np.abs(down) <= half) & (np.abs(right) <= half)
    if shape == "circle":
        return down**2 + right**2 <= half**2
    if shape == "triangle":  # its tip is above
        return inside & (np.abs(right) <= (down + half) / 2)
    if shape == "cross":
        return inside & ((np.abs(down) <= width / 6) | (np.abs(right) <= width / 6))
    return inside
