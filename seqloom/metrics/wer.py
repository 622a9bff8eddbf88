"""Word error rate: edits per word of the reference, in percent."""

from __future__ import annotations

from seqloom.metrics.edit_rate import edit_rate

HIGHER_IS_BETTER = False


def wer(predictions: list[str], references: list[list[str]]) -> dict[str, float]:
    """Words are separated by white space; case and punctuation count."""
    return {"wer": edit_rate("wer", predictions, references, str.split)}
