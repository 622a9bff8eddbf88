"""Delaunay triangulations: "0.1,0.1 0.9,0.2 0.4,0.9 0.5,0.4" -> "0 2 3 0 1 3 1 2 3", triples of places.

Vinyals, Fortunato & Jaitly 2015, section 3.2: no point is inside the circle through a triangle's corners. Places
ascend within a triple, and triples are in the order of their incentres, from left to right.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from seqloom.data.generators.points import as_source, as_target, check_numbers, draw_points
from seqloom.errors import SeqloomError
from seqloom.types import Example


def delaunay(count: int, seed: int = 1, *, shortest: int = 5, longest: int = 5) -> list[Example]:
    """`count` sets of shortest to longest points; a smaller count gives the first of them."""
    check_numbers("delaunay", count, shortest, longest, 3)
    triangulate = library()
    random = np.random.default_rng(seed)
    drawn = (draw_points(random, shortest, longest) for _ in range(count))
    return [Example(as_source(points), as_target(triples(points, triangulate))) for points in drawn]


def library() -> Any:
    """SciPy's Delaunay."""
    try:
        from scipy.spatial import Delaunay
    except ImportError:
        message = 'the delaunay generator needs scipy, which is not installed: pip install "seqloom[points]"'
        raise SeqloomError(message) from None
    return Delaunay


def triples(points: np.ndarray, triangulate: Any) -> list[int]:
    """The corners of all triangles, three by three.  (n, 2) -> 3 * triangles"""
    found = np.sort(triangulate(points.astype(np.float64)).simplices, 1)  # (triangles, 3)
    corners = points[found].astype(np.float64)  # (triangles, 3, 2)
    opposite = np.linalg.norm(np.roll(corners, -1, 1) - np.roll(corners, 1, 1), axis=2)  # (triangles, 3) sides
    incentres = (opposite[:, :, None] * corners).sum(1) / opposite.sum(1)[:, None]
    return found[np.lexsort((incentres[:, 1], incentres[:, 0]))].ravel().tolist()
