"""Phoneme error rate: edits per phoneme of the reference, in percent."""

from __future__ import annotations

from seqloom.metrics.edit_rate import edit_rate

HIGHER_IS_BETTER = False


def per(predictions: list[str], references: list[list[str]]) -> dict[str, float]:
    """Phonemes are separated by white space; each prediction is compared with its closest pronunciation."""
    return {"per": edit_rate("per", predictions, references, str.split)}
