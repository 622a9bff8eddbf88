"""Accuracy: labels that are right, in percent."""

from __future__ import annotations

from seqloom.metrics.exact import exact

HIGHER_IS_BETTER = True


def accuracy(predictions: list[str], references: list[list[str]]) -> dict[str, float]:
    """A label is right if it equals one of its references, whole."""
    return {"accuracy": exact(predictions, references)["exact"]}
