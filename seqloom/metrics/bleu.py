"""BLEU: the n-grams of the predictions that are in the references, in percent.

Papineni et al. 2002, as sacrebleu computes it (Post 2018): over the corpus, on detokenised text, with
its default tokeniser. Give the signature with every figure. As a reward it is smoothed, per sentence.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from seqloom.metrics.check import check_pairs
from seqloom.metrics.ngrams import lengths_of, ngram_counts

HIGHER_IS_BETTER = True
LONGEST = 4  # n-grams


def bleu(predictions: list[str], references: list[list[str]]) -> dict[str, float]:
    """Sentences may have different numbers of references."""
    score, _ = score_and_signature(predictions, references)
    return {"bleu": score}


def signature(predictions: list[str], references: list[list[str]]) -> str:
    """The settings of sacrebleu, to repeat the figure: "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:..."."""
    _, text = score_and_signature(predictions, references)
    return text


def score_and_signature(predictions: list[str], references: list[list[str]]) -> tuple[float, str]:
    from sacrebleu.metrics.bleu import BLEU  # slow to import, and prediction does not need it

    check_pairs("bleu", predictions, references)
    metric = BLEU(force=True)  # no warning at each validation that the output looks tokenised
    score = metric.corpus_score(predictions, streams(references)).score
    return float(score), str(metric.get_signature())


def streams(references: list[list[str]]) -> list[Any]:
    """References as sacrebleu takes them: all first ones, all second ones, ...; None where a sentence has fewer."""
    return [list(stream) for stream in zip_longest(*references)]


def rewards(predictions: Sequence[Sequence[Hashable]], references: Sequence[Sequence[Hashable]]) -> np.ndarray:
    """Smoothed BLEU of each pair, in [0, 1]: one match and one n-gram are added to the orders 2 to 4.  (N,)

    Lin & Och 2004; "add-k" in sacrebleu. As there, orders longer than the prediction count as matched, and without a
    common token it is 0.
    """
    found, expected = lengths_of(predictions), lengths_of(references)  # (N,)
    product = np.ones(len(found))
    for order, counts in enumerate(ngram_counts(predictions, references, LONGEST), start=1):
        matches = counts.sums(np.minimum(counts.found, counts.expected), len(found))
        more = order > 1
        product *= (matches + more) / np.maximum(found - order + 1 + more, 1)
    brevity = np.exp(np.minimum(0.0, 1 - expected / np.maximum(found, 1)))
    return brevity * product ** (1 / LONGEST)
