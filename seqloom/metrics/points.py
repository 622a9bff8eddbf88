"""Points of the plane and places among them: what the metrics of hulls and tours share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from seqloom.errors import SeqloomError, UnreadableError, shown
from seqloom.metrics.check import check_pairs


def check_points(metric: str, predictions: Sequence[Any], references: Sequence[Any], sources: Sequence[Any]) -> None:
    """Each prediction must have references and a source."""
    check_pairs(metric, list(predictions), list(references))
    if len(sources) != len(predictions):
        found = f"{len(predictions):,} predictions but {len(sources):,} sources"
        raise SeqloomError(f"{metric}: {found}; expected the points of each")


def points_of(metric: str, source: Any) -> np.ndarray:
    """The points of a source, given as an array or as text: "0.31,0.9 0.44,0.2".  (n, 2)"""
    try:
        rows = [each.split(",") for each in source.split()] if isinstance(source, str) else source
        points = np.asarray(rows, dtype=np.float64)
    except (TypeError, ValueError):
        points = np.empty(0)
    if points.ndim != 2 or points.shape[1] != 2:
        raise UnreadableError(
            f'{metric}: the source {shown(source)} has no points of the plane; expected some such as "0.31,0.9"'
        )
    return points


def places_of(value: Any, number: int) -> list[int]:
    """Places among so many points, given as a list or as text; [] if anything is not a place."""
    try:
        places = [int(each) for each in (value.split() if isinstance(value, str) else value)]
    except (TypeError, ValueError):
        return []
    return places if all(0 <= place < number for place in places) else []


def best_of(
    predictions: Sequence[Any],
    references: Sequence[Sequence[Any]],
    sources: Sequence[Any],
    score: Callable[[Any, Any, Any], float],
) -> list[float]:
    """The score of each prediction with its best reference."""
    rows = zip(predictions, references, sources)
    return [max(score(found, expected, source) for expected in choices) for found, choices, source in rows]
