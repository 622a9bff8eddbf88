"""Exact match: predictions that equal one of their references, in percent."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from seqloom.metrics.mean_reward import mean_reward

HIGHER_IS_BETTER = True


def exact(predictions: list[str], references: list[list[str]]) -> dict[str, float]:
    """Every character counts; nothing is normalised."""
    return {"exact": mean_reward("exact", rewards, predictions, references, str)}


def rewards(predictions: Sequence[Sequence[Hashable]], references: Sequence[Sequence[Hashable]]) -> np.ndarray:
    """1 for equal sequences, 0 for others.  (N,)"""
    pairs = zip(predictions, references, strict=True)
    return np.array([list(found) == list(expected) for found, expected in pairs], dtype=np.float64)
