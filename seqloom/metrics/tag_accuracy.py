"""Accuracy of tags: how many of all tags are right, in percent."""

from __future__ import annotations

from seqloom.metrics.check import check_tags

HIGHER_IS_BETTER = True


def tag_accuracy(predictions: list[str], references: list[list[str]]) -> dict[str, float]:
    """With several references the closest one counts."""
    right = count = 0
    for found, choices in check_tags("tag_accuracy", predictions, references):
        right += max(sum(map(str.__eq__, found, choice)) for choice in choices)
        count += len(found)
    return {"tag_accuracy": 100 * right / max(count, 1)}
