"""GLEU: the shared n-grams of a sentence relative to its own or its reference's, whichever are more; in percent.

Wu et al. 2016, section 5: the minimum of precision and recall over all n-grams of 1 to 4 tokens together. It was made
to reward single sentences: it needs no smoothing and no penalty for brevity, and is symmetric.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from seqloom.metrics.mean_reward import mean_reward
from seqloom.metrics.ngrams import ngram_counts

HIGHER_IS_BETTER = True
LONGEST = 4  # n-grams


def gleu(predictions: list[str], references: list[list[str]]) -> dict[str, float]:
    """The mean over sentences, each against its best reference. Words are separated by white space."""
    return {"gleu": mean_reward("gleu", rewards, predictions, references, str.split)}


def rewards(predictions: Sequence[Sequence[Hashable]], references: Sequence[Sequence[Hashable]]) -> np.ndarray:
    """GLEU of each pair, in [0, 1]; 1 where both are empty.  (N,)"""
    matches, found, expected = np.zeros((3, len(predictions)))  # n-grams of all orders
    for counts in ngram_counts(predictions, references, LONGEST):
        matches += counts.sums(np.minimum(counts.found, counts.expected), len(found))
        found += counts.sums(counts.found, len(found))
        expected += counts.sums(counts.expected, len(found))
    most = np.maximum(found, expected)
    return np.where(most > 0, matches / np.maximum(most, 1), 1.0)
