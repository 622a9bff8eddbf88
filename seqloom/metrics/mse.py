"""Mean squared error over all components of numbers or vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from seqloom.errors import SeqloomError
from seqloom.metrics.check import check_pairs

HIGHER_IS_BETTER = False
COMPARES = "vectors"


def mse(predictions: list[Any], references: list[list[Any]]) -> dict[str, float]:
    """With several references the closest one counts."""
    check_pairs("mse", predictions, references)
    total = count = 0.0
    for number, (prediction, choices) in enumerate(zip(predictions, references), start=1):
        found = as_array(prediction, number)
        squares = [squared(found, as_array(choice, number), number) for choice in choices]
        total, count = total + min(squares), count + found.size
    return {"mse": total / count}


def as_array(value: Any, number: int) -> np.ndarray:
    """Numbers in any shape but an empty one."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.empty(0)
    if isinstance(value, str) or not array.size:
        raise SeqloomError(f"mse: example {number} has {value!r:.60}, expected numbers; measure text by another metric")
    return array


def squared(found: np.ndarray, expected: np.ndarray, number: int) -> float:
    if found.shape != expected.shape:
        shapes = f"a prediction of shape {list(found.shape)} and a reference of {list(expected.shape)}"
        raise SeqloomError(f"mse: example {number} has {shapes}, expected the same")
    return float(np.square(found - expected).sum())
