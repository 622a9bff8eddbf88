"""BLEU: how many n-grams of the predictions stand in the references, in percent.

Papineni et al. 2002, as sacrebleu computes it (Post 2018): over the corpus, on detokenised text, with
its default tokeniser. Give the signature with every figure.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from seqloom.metrics.edit_rate import check_pairs

HIGHER_IS_BETTER = True


def bleu(predictions: list[str], references: list[list[str]]) -> dict[str, float]:
    """Sentences may have different numbers of references."""
    score, _ = scored(predictions, references)
    return {"bleu": score}


def signature(predictions: list[str], references: list[list[str]]) -> str:
    """What sacrebleu did, for others to repeat: "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:..."."""
    _, text = scored(predictions, references)
    return text


def scored(predictions: list[str], references: list[list[str]]) -> tuple[float, str]:
    """The score and the signature that belongs to it."""
    from sacrebleu.metrics.bleu import BLEU  # who only predicts need not wait for it

    check_pairs("bleu", predictions, references)
    metric = BLEU(force=True)  # a model's tokenised-looking output is a result, not a reason to warn at each validation
    score = metric.corpus_score(predictions, streams(references)).score
    return float(score), str(metric.get_signature())


def streams(references: list[list[str]]) -> list[Any]:
    """References as sacrebleu reads them: the first of every sentence, the second, ...; None where there is none."""
    return [list(stream) for stream in zip_longest(*references)]
