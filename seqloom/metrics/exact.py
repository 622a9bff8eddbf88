"""Exact match: how many predictions equal one of their references, in percent."""

from __future__ import annotations

from seqloom.metrics.edit_rate import check_pairs

HIGHER_IS_BETTER = True


def exact(predictions: list[str], references: list[list[str]]) -> dict[str, float]:
    """Every character counts; nothing is normalised."""
    check_pairs("exact", predictions, references)
    hits = sum(prediction in choices for prediction, choices in zip(predictions, references))
    return {"exact": 100.0 * hits / len(predictions)}
