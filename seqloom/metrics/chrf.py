"""chrF: the F-score of character n-grams, recall counted twice, in percent.

Popović 2015, as sacrebleu computes it: over the corpus, n-grams up to six, without white space.
"""

from __future__ import annotations

from seqloom.metrics.bleu import streams
from seqloom.metrics.check import check_pairs

HIGHER_IS_BETTER = True


def chrf(predictions: list[str], references: list[list[str]]) -> dict[str, float]:
    """Sentences may have different numbers of references."""
    from sacrebleu.metrics.chrf import CHRF

    check_pairs("chrf", predictions, references)
    return {"chrf": float(CHRF().corpus_score(predictions, streams(references)).score)}
