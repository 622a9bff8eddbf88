"""Points of the plane and places among them, as metrics are given them: what hulls, tours and triangles share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from seqloom.errors import SeqloomError, UnreadableError, shown
from seqloom.metrics.edit_rate import check_pairs


def check_points(metric: str, predictions: Sequence[Any], references: Sequence[Any], sources: Sequence[Any]) -> None:
    """Refuse what these metrics are not defined for."""
    check_pairs(metric, list(predictions), list(references))
    if len(sources) != len(predictions):
        found = f"{len(predictions):,} predictions but {len(sources):,} sources"
        raise SeqloomError(f"{metric}: {found}; expected the points of each")


def points_of(metric: str, source: Any) -> np.ndarray:
    """As arrays, or as the text of a file: "0.31,0.9 0.44,0.2".  (n, 2)"""
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
    """Places among so many points, of a list or of text; [] where anything else stands."""
    try:
        places = [int(each) for each in (value.split() if isinstance(value, str) else value)]
    except (TypeError, ValueError):
        return []
    return places if all(0 <= place < number for place in places) else []


def best_of(
    predictions: Sequence[Any],
    references: Sequence[Sequence[Any]],
    sources: Sequence[Any],
    worth: Callable[[Any, Any, Any], float],
) -> list[float]:
    """What each prediction is worth, by the reference it is worth most with."""
    rows = zip(predictions, references, sources)
    return [max(worth(found, expected, source) for expected in choices) for found, choices, source in rows]
