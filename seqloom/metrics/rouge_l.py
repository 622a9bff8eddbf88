"""ROUGE-L: the length of the longest common subsequence relative to both texts, in percent.

Lin 2004, section 3, with beta = 1: F = 2 LCS / (length of the prediction + length of the reference).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from rapidfuzz.distance import LCSseq
from rapidfuzz.process import cpdist

from seqloom.metrics.mean_reward import mean_reward
from seqloom.metrics.ngrams import lengths_of

HIGHER_IS_BETTER = True


def rouge_l(predictions: list[str], references: list[list[str]]) -> dict[str, float]:
    """The mean over sentences, each against its best reference. Words are separated by white space."""
    return {"rouge_l": mean_reward("rouge_l", rewards, predictions, references, str.split)}


def rewards(predictions: Sequence[Sequence[Hashable]], references: Sequence[Sequence[Hashable]]) -> np.ndarray:
    """F of each pair, in [0, 1]; 1 where both are empty.  (N,)"""
    common = cpdist(predictions, references, scorer=LCSseq.similarity)
    lengths = lengths_of(predictions) + lengths_of(references)
    return np.where(lengths > 0, 2.0 * common / np.maximum(lengths, 1), 1.0)
