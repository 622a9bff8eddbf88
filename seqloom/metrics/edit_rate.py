"""Edit rate: insertions, deletions and substitutions per token of the reference, in percent.

What word, character and phoneme error rate share.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cpdist

from seqloom.errors import SeqloomError
from seqloom.metrics.check import check_pairs


def edit_rate(
    metric: str, predictions: list[str], references: list[list[str]], tokens: Callable[[str], Sequence[str]]
) -> float:
    """100 * sum of edit distances / sum of reference lengths, each to the reference with the lowest rate."""
    check_pairs(metric, predictions, references)
    edits = length = 0
    for prediction, choices in zip(predictions, references):
        found = tokens(prediction)
        fewest, size = min((edits_and_length(found, tokens(choice)) for choice in choices), key=rate_then_longer)
        edits, length = edits + fewest, length + size
    if not length:
        raise SeqloomError(f"{metric}: all references are empty, expected some text; check the target side of the data")
    return 100.0 * edits / length


def rewards(predictions: Sequence[Sequence[Hashable]], references: Sequence[Sequence[Hashable]]) -> np.ndarray:
    """-(edits / tokens of the reference) of each pair; -edits where the reference is empty.  (N,)"""
    edits = cpdist(predictions, references, scorer=Levenshtein.distance).astype(np.float64)
    lengths = np.fromiter(map(len, references), np.int64, len(references))
    return 0.0 - edits / np.maximum(lengths, 1)  # not -0.0


def edits_and_length(found: Sequence[str], expected: Sequence[str]) -> tuple[int, int]:
    """The edit distance, and the length of the reference."""
    return Levenshtein.distance(found, expected), len(expected)


def rate_then_longer(pair: tuple[int, int]) -> tuple[float, int]:
    """Sorts by rate, among equal rates the longer reference first; an empty one fits only an empty prediction."""
    edits, size = pair
    if not size:
        return (float("inf") if edits else 0.0), 0
    return edits / size, -size
