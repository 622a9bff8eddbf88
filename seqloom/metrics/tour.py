"""Tours as orders of places: how long they are on average, and compared with their references.

An output that is no tour counts as the points in the order they were given; which part of all these are is `no_tour`.
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
    """Ratios are of mean lengths; of several references the shortest counts."""
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
    """Every place once, in the order of a tour that may say its first place again; [] if it is none."""
    places = places_of(value, number)
    order = places[:-1] if len(places) == number + 1 and places[-1] == places[0] else places
    return order if sorted(order) == list(range(number)) else []


def length(points: np.ndarray, order: Sequence[int]) -> float:
    """Of the way through points and back to the first.  (n, 2)"""
    way = points[list(order)]
    return float(np.linalg.norm(way - np.roll(way, -1, 0), axis=1).sum())


def reference_length(expected: Any, points: np.ndarray) -> float:
    return length(points, order_of(expected, len(points)) or list(range(len(points))))
