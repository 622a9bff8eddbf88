"""BLEU-1 to BLEU-4 of captions, in percent: over the corpus, of words in lower case without punctuation.

Papineni et al. 2002 as coco-caption computes it (Chen et al. 2015, section 3.2): of several references the closest in
length counts for the brevity penalty, the shorter one of two as close. There is no smoothing: without a common n-gram
it is 0.
"""

from __future__ import annotations

from seqloom.metrics.bleu import streams
from seqloom.metrics.caption_words import caption_words
from seqloom.metrics.check import check_pairs

HIGHER_IS_BETTER = True
LONGEST = 4  # n-grams


def caption_bleu(predictions: list[str], references: list[list[str]]) -> dict[str, float]:
    """BLEU-4 as "caption_bleu", the others as "caption_bleu_1" to "caption_bleu_3"."""
    from sacrebleu.metrics.bleu import BLEU  # slow to import

    check_pairs("caption_bleu", predictions, references)
    found = [joined(text) for text in predictions]
    expected = streams([[joined(choice) for choice in choices] for choices in references])
    results = {}
    for order in range(1, LONGEST + 1):
        metric = BLEU(tokenize="none", smooth_method="none", max_ngram_order=order, force=True)
        results[f"caption_bleu_{order}"] = float(metric.corpus_score(found, expected).score)
    return {"caption_bleu": results.pop(f"caption_bleu_{LONGEST}"), **results}


def joined(text: str) -> str:
    return " ".join(caption_words(text))
