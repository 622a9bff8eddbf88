"""ROUGE-1, ROUGE-2 and ROUGE-L: F-measures of unigrams, bigrams and the longest common subsequence, in percent.

Lin 2004, sections 2 and 3, as the package rouge-score computes them: words are runs of the letters a to z and digits,
in lower case; each figure is that of the reference for which it is highest. Words of other alphabets do not count:
take rouge_l for them. rouge_stemmed is the same of stems.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence

import numpy as np

from seqloom.metrics import rouge_l
from seqloom.metrics.check import check_pairs
from seqloom.metrics.ngrams import ngram_counts

HIGHER_IS_BETTER = True
NAMES = ("rouge1", "rouge2", "rougeL")  # as rouge-score has them
WORDS = re.compile("[a-z0-9]+")


def rouge(predictions: list[str], references: list[list[str]]) -> dict[str, float]:
    """The three, and their mean as "rouge": one figure to choose a checkpoint by."""
    return best_over_references("rouge", predictions, references, words)


def rewards(predictions: Sequence[Sequence[Hashable]], references: Sequence[Sequence[Hashable]]) -> np.ndarray:
    """The mean of the three for each pair, in [0, 1]; 0 where both are empty.  (N,)"""
    found: np.ndarray = f_measures(predictions, references).mean(0)
    return found


def f_measures(predictions: Sequence[Sequence[Hashable]], references: Sequence[Sequence[Hashable]]) -> np.ndarray:
    """Of each pair, in [0, 1]; 0 where there is nothing to share.  (3, N)"""
    rows = []
    for counts in ngram_counts(predictions, references, 2):
        matches, both = (
            counts.sums(each, len(predictions))
            for each in (np.minimum(counts.found, counts.expected), counts.found + counts.expected)
        )
        rows.append(2 * matches / np.maximum(both, 1))
    is_empty = np.array([not (found or expected) for found, expected in zip(predictions, references)], dtype=bool)
    return np.stack([*rows, np.where(is_empty, 0.0, rouge_l.rewards(predictions, references))])


def best_over_references(
    metric: str, predictions: list[str], references: list[list[str]], read: Callable[[str], list[str]]
) -> dict[str, float]:
    """The means over predictions, the best reference counted for each figure by itself."""
    check_pairs(metric, predictions, references)
    numbers = [len(choices) for choices in references]
    found = [each for text, number in zip(predictions, numbers) for each in [read(text)] * number]
    values = f_measures(found, [read(choice) for choices in references for choice in choices])  # (3, pairs)
    best = np.maximum.reduceat(values, np.cumsum([0, *numbers[:-1]]), axis=1)  # (3, N)
    figures = {name: 100 * float(value) for name, value in zip(NAMES, best.mean(1))}
    return {metric: sum(figures.values()) / len(figures), **figures}


def words(text: str) -> list[str]:
    """In lower case, without punctuation: "The U.N.'s" is the, u, n, s."""
    return WORDS.findall(text.lower())
