"""chrF: the F-score of character n-grams, recall weighing twice, in percent.

Popović 2015, as sacrebleu computes it: over the corpus, n-grams up to six, white space left out.
"""

from __future__ import annotations

from seqloom.metrics.bleu import streams
from seqloom.metrics.edit_rate import check_pairs

HIGHER_IS_BETTER = True


def chrf(predictions: list[str], references: list[list[str]]) -> dict[str, float]:
    """Sentences may have different numbers of references."""
    from sacrebleu.metrics.chrf import CHRF

    check_pairs("chrf", predictions, references)
    return {"chrf": float(CHRF().corpus_score(predictions, streams(references)).score)}
