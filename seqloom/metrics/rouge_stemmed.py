"""ROUGE-1, ROUGE-2 and ROUGE-L of stems: rouge-score's `use_stemmer=True`, which most papers report; in percent.

Words of more than three characters are stemmed (Porter 1980), all else is as in rouge.
"""

from __future__ import annotations

from seqloom.metrics.porter import stem
from seqloom.metrics.rouge import best_over_references, words

HIGHER_IS_BETTER = True


def rouge_stemmed(predictions: list[str], references: list[list[str]]) -> dict[str, float]:
    """Under the names "rouge1_stemmed", ..., with their mean as "rouge_stemmed"."""
    found = best_over_references("rouge_stemmed", predictions, references, stems)
    return {name if name == "rouge_stemmed" else f"{name}_stemmed": value for name, value in found.items()}


def stems(text: str) -> list[str]:
    return [stem(word) if len(word) > 3 else word for word in words(text)]
