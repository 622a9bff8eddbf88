"""Character error rate: edits per character of the reference, in percent."""

from __future__ import annotations

from seqloom.metrics.edit_rate import edit_rate

HIGHER_IS_BETTER = False


def cer(predictions: list[str], references: list[list[str]]) -> dict[str, float]:
    """Characters are Unicode code points, spaces included."""
    return {"cer": edit_rate("cer", predictions, references, list)}
