"""Convex hulls as rings of places: exact ones, and the area they cover, in percent.

Vinyals, Fortunato & Jaitly 2015, section 4.2: a ring may begin anywhere. `area` is the mean over simple polygons,
relative to the true area; it is 0, their FAIL, if more than 1 % of the outputs are no simple polygon, that is, open or
crossing themselves. `invalid` is the percentage of those.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from seqloom.metrics.points import best_of, check_points, places_of, points_of

HIGHER_IS_BETTER = True
check_source = partial(points_of, "hull")
TOLERATED = 1.0  # percent of outputs


def hull(predictions: list[Any], references: list[list[Any]], sources: Sequence[Any]) -> dict[str, float]:
    """With several references the best one counts."""
    check_points("hull", predictions, references, sources)
    points = [points_of("hull", source) for source in sources]
    right = best_of(predictions, references, points, same_ring)
    covered = [share for share in best_of(predictions, references, points, coverage) if share >= 0]
    invalid = 100.0 * (len(predictions) - len(covered)) / len(predictions)
    area = 100.0 * sum(covered) / len(covered) if covered and invalid <= TOLERATED else 0.0
    return {"hull": 100.0 * sum(right) / len(right), "area": area, "invalid": invalid}


def corners_of(value: Any, number: int) -> list[int]:
    """The places of a ring, from the lowest on; [] unless it is three or more different places and the first again."""
    places = places_of(value, number)
    corners = places[:-1]
    if len(corners) < 3 or places[-1] != places[0] or len({*corners}) < len(corners):
        return []
    first = corners.index(min(corners))
    return corners[first:] + corners[:first]


def same_ring(found: Any, expected: Any, points: np.ndarray) -> float:
    corners = corners_of(found, len(points))
    return float(bool(corners) and corners == corners_of(expected, len(points)))


def coverage(found: Any, expected: Any, points: np.ndarray) -> float:
    """The area of a ring relative to the expected one; -1 if it is no simple polygon."""
    corners, whole = (points[corners_of(each, len(points))] for each in (found, expected))
    return abs(area(corners)) / max(abs(area(whole)), 1e-12) if is_simple(corners) else -1.0


def area(corners: np.ndarray) -> float:
    """The area of a polygon, above 0 if its corners run counter-clockwise.  (n, 2)"""
    x, y = corners.T
    return float((x * np.roll(y, -1) - np.roll(x, -1) * y).sum() / 2)


def is_simple(corners: np.ndarray) -> bool:
    """Whether no two sides of a polygon cross.  (n, 2)"""
    number = len(corners)
    if number < 3:
        return False
    starts, ends = corners, np.roll(corners, -1, 0)

    def left(point: np.ndarray) -> np.ndarray:
        """On which side of each polygon side each point lies.  (sides, points)"""
        along, there = (ends - starts)[:, None], point[None] - starts[:, None]
        return np.sign(along[..., 0] * there[..., 1] - along[..., 1] * there[..., 0])

    parted = left(starts) * left(ends) < 0  # [i, j]: the ends of side j lie on different sides of the line through i
    return not bool((parted & parted.T).any())
