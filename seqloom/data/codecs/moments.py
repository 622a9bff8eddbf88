"""Mean and deviation of many arrays, read one by one. Chan, Golub & LeVeque 1979: no sum of large squares."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np


def mean_and_deviation(arrays: Iterable[np.ndarray]) -> tuple[np.ndarray, np.ndarray] | None:
    """Of each component of all vectors (n, F) together; None if there are no arrays.  (F,), (F,)"""
    count, mean, scatter = 0, np.zeros(1), np.zeros(1)
    for array in arrays:
        vectors = array.astype(np.float64)
        centre, total = vectors.mean(0), count + len(vectors)
        scatter = scatter + ((vectors - centre) ** 2).sum(0) + (centre - mean) ** 2 * count * len(vectors) / total
        mean = mean + (centre - mean) * len(vectors) / total
        count = total
    return (mean, np.sqrt(scatter / count)) if count else None
