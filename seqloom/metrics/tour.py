"""Tours as orders of places: their mean length, absolute and relative to the references.

An output that is no tour counts as the points in the order they were given; `no_tour` is the percentage of those.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from seqloom.metrics.points import best_of, check_points, places_of, points_of

HIGHER_IS_BETTER = False
check_source = partial(points_of, "tour")


def tour(predictions: list[Any], references: list[list[Any]], sources: Sequence[Any]) -> dict[str, float]:
    """tour_ratio is a ratio of mean lengths; with several references the shortest one counts."""
    check_points("tour", predictions, references, sources)
    points = [points_of("tour", source) for source in sources]
    orders = [order_of(found, len(each)) for found, each in zip(predictions, points)]
    found = np.mean([length(each, order or list(range(len(each)))) for order, each in zip(orders, points)])
    shortest = best_of(predictions, references, points, lambda _, expected, each: -reference_length(expected, each))
    missing = sum(not order for order in orders)
    return {
        "tour": float(found),
        "tour_ratio": float(found / max(-float(np.mean(shortest)), 1e-12)),
        "no_tour": 100.0 * missing / len(predictions),
    }


def order_of(value: Any, number: int) -> list[int]:
    """The places of a tour, which may end with its first place again; [] unless it has every place once."""
    places = places_of(value, number)
    order = places[:-1] if len(places) == number + 1 and places[-1] == places[0] else places
    return order if sorted(order) == list(range(number)) else []


def length(points: np.ndarray, order: Sequence[int]) -> float:
    """Of the closed way through points.  (n, 2)"""
    way = points[list(order)]
    return float(np.linalg.norm(way - np.roll(way, -1, 0), axis=1).sum())


def reference_length(expected: Any, points: np.ndarray) -> float:
    return length(points, order_of(expected, len(points)) or list(range(len(points))))
