"""Intersection over union: the different words of two texts that are in both, in percent. Jaccard 1901."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from seqloom.metrics.mean_reward import mean_reward
from seqloom.metrics.ngrams import ngram_counts

HIGHER_IS_BETTER = True


def iou(predictions: list[str], references: list[list[str]]) -> dict[str, float]:
    """The mean over sentences, each against its best reference. Words are separated by white space."""
    return {"iou": mean_reward("iou", rewards, predictions, references, str.split)}


def rewards(predictions: Sequence[Sequence[Hashable]], references: Sequence[Sequence[Hashable]]) -> np.ndarray:
    """Of the sets of tokens of each pair, in [0, 1]; 1 where both are empty.  (N,)"""
    (counts,) = ngram_counts(predictions, references, 1)
    both = counts.sums((counts.found > 0) & (counts.expected > 0), len(predictions))
    either = counts.sums(np.ones_like(counts.pairs), len(predictions))
    return np.where(either > 0, both / np.maximum(either, 1), 1.0)
