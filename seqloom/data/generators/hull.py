"""Convex hulls: "0.1,0.1 0.5,0.4 0.9,0.2 0.4,0.9" -> "0 2 3 0", the corners counter-clockwise, by their places.

Vinyals, Fortunato & Jaitly 2015, section 3.1. A ring begins and ends at the corner that is first in the source, as in
their data. The corners are exact (Andrew 1979): points are on a grid.
"""

from __future__ import annotations

import numpy as np

from seqloom.data.generators.points import as_source, as_target, check_numbers, draw_points
from seqloom.types import Example


def hull(count: int, seed: int = 1, *, shortest: int = 5, longest: int = 5) -> list[Example]:
    """`count` sets of shortest to longest points; a smaller count gives the first of them."""
    check_numbers("hull", count, shortest, longest, 3)
    random = np.random.default_rng(seed)
    drawn = (draw_points(random, shortest, longest) for _ in range(count))
    return [Example(as_source(points), as_target(ring(points.tolist()))) for points in drawn]


def ring(points: list[list[int]]) -> list[int]:
    """The places of the corners of integer points, counter-clockwise, from the lowest place back to it."""
    order = sorted(range(len(points)), key=points.__getitem__)
    below, above = half(points, order), half(points, order[::-1])
    corners = below[:-1] + above[:-1]
    first = corners.index(min(corners))
    return [*corners[first:], *corners[:first], corners[first]]


def half(points: list[list[int]], order: list[int]) -> list[int]:
    """The points, in this order, at which the line turns left."""
    found: list[int] = []
    for place in order:
        x, y = points[place]
        while len(found) > 1:
            (before_x, before_y), (last_x, last_y) = points[found[-2]], points[found[-1]]
            if (last_x - before_x) * (y - before_y) > (last_y - before_y) * (x - before_x):
                break
            found.pop()
        found.append(place)
    return found
