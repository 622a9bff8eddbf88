"""Macro-averaged F1 of labels, in percent: the mean over labels, so that rare ones count as much as frequent ones."""

from __future__ import annotations

from collections import Counter

from seqloom.metrics.check import check_pairs

HIGHER_IS_BETTER = True


def macro_f1(predictions: list[str], references: list[list[str]]) -> dict[str, float]:
    """Over all labels that occur. With several references, one that equals the prediction counts, else the first."""
    check_pairs("macro_f1", predictions, references)
    expected = [found if found in choices else choices[0] for found, choices in zip(predictions, references)]
    right = Counter(one for one, other in zip(predictions, expected) if one == other)
    totals = Counter(predictions) + Counter(expected)  # true positives twice, false positives and negatives once
    return {"macro_f1": 100 * sum(2 * right[label] / total for label, total in totals.items()) / len(totals)}
