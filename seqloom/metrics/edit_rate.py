"""Edit rate: how many insertions, deletions and substitutions a prediction is away, per token of its reference.

What word, character and phoneme error rate share, and the check that all metrics share.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cpdist

from seqloom.errors import SeqloomError


def check_pairs(metric: str, predictions: list[str], references: list[list[str]]) -> None:
    """Refuse what no metric is defined for."""
    if not predictions:
        raise SeqloomError(
            f"{metric}: there are no predictions, expected at least one; check that the data is not empty"
        )
    if len(predictions) != len(references):
        raise SeqloomError(
            f"{metric}: {len(predictions)} predictions but {len(references)} lists of references, "
            "expected as many; give each prediction its own list"
        )
    for number, choices in enumerate(references, start=1):
        if isinstance(choices, str) or not choices:
            raise SeqloomError(
                f"{metric}: prediction {number} has {choices!r} for references, "
                "expected a list with at least one string; put a single reference in a list of its own"
            )


def edit_rate(
    metric: str, predictions: list[str], references: list[list[str]], symbols: Callable[[str], Sequence[str]]
) -> float:
    """100 * sum of edit distances / sum of reference lengths, each to the reference that is closest by rate."""
    check_pairs(metric, predictions, references)
    edits = length = 0
    for prediction, choices in zip(predictions, references):
        found = symbols(prediction)
        distance, size = min((closeness(found, symbols(choice)) for choice in choices), key=rate_then_longer)
        edits, length = edits + distance, length + size
    if not length:
        raise SeqloomError(f"{metric}: all references are empty, expected some text; check the target side of the data")
    return 100.0 * edits / length


def rewards(predictions: Sequence[Sequence[Hashable]], references: Sequence[Sequence[Hashable]]) -> np.ndarray:
    """-(edits / tokens of the reference) of each pair; of an empty reference, -edits.  (N,)"""
    edits = cpdist(predictions, references, scorer=Levenshtein.distance).astype(np.float64)
    lengths = np.fromiter(map(len, references), np.int64, len(references))
    return 0.0 - edits / np.maximum(lengths, 1)  # not -0.0


def closeness(found: Sequence[str], expected: Sequence[str]) -> tuple[int, int]:
    """Edits from one to the other, and the length they are counted against."""
    return Levenshtein.distance(found, expected), len(expected)


def rate_then_longer(closeness: tuple[int, int]) -> tuple[float, int]:
    """Orders references by their rate, the longer first among equals; an empty one fits only an empty prediction."""
    distance, size = closeness
    if not size:
        return (float("inf") if distance else 0.0), 0
    return distance / size, -size
