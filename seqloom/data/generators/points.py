"""What generators of points share: points of the unit square, on a grid, so that integer arithmetic is exact."""

from __future__ import annotations

import numpy as np

from seqloom.data.generators.sampling import check_range

GRID = 1_000_000  # coordinates have six decimals


def check_numbers(generator: str, count: int, shortest: int, longest: int, least: int, most: int | None = None) -> None:
    """Check the number of examples and of their elements."""
    check_range(generator, "count", count, 1)
    check_range(generator, "shortest", shortest, least, most)
    check_range(generator, "longest", longest, shortest, most)


def draw_points(random: np.random.Generator, shortest: int, longest: int) -> np.ndarray:
    """Distinct points in grid units, not all on one line.  (n, 2)"""
    number = int(random.integers(shortest, longest, endpoint=True))
    while True:
        points = random.integers(0, GRID, size=(number, 2), endpoint=True)
        different = len({*map(tuple, points.tolist())}) == number
        if different and (number < 3 or np.any(areas(points[0], points[1], points))):
            return points


def areas(first: np.ndarray, second: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Twice the signed areas of the triangles of a line and each point: positive to its left.  (n,)"""
    along, there = second - first, points - first
    return along[0] * there[:, 1] - along[1] * there[:, 0]


def as_source(points: np.ndarray) -> str:
    """Points as the numbers codec reads them: "0.31,0.9 0.44,0.2"."""
    return " ".join(",".join(f"{number / GRID:g}" for number in point) for point in points.tolist())


def as_target(places: list[int]) -> str:
    return " ".join(map(str, places))
