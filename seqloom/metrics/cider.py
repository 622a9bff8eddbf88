"""CIDEr-D: how alike a caption and its references are, words counted by how much they tell; 100 times coco-caption's.

Vedantam, Zitnick & Parikh 2015, section 4 and eq. 6 (CIDEr-D): the cosine of vectors of tf-idf of n-grams, clipped,
with a Gaussian penalty of the difference in length, the mean over n = 1 to 4 and over references. coco-caption gives
ten times that; papers print its figure times 100, as this does, so that 1,000 is the most. Documents are sources: a
word that is in references of all of them counts for nothing, so figures of different test sets cannot be compared,
and that of one source is 0.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain
from math import exp, log

from seqloom.metrics.caption_words import caption_words
from seqloom.metrics.check import check_pairs

HIGHER_IS_BETTER = True
LONGEST = 4  # n-grams
SIGMA = 6.0  # of the penalty, in words
SCALE = 10.0

Ngram = tuple[str, ...]
Vector = list[dict[Ngram, float]]  # by the length of n-grams


def cider(predictions: list[str], references: list[list[str]]) -> dict[str, float]:
    check_pairs("cider", predictions, references)
    found = [ngrams(caption_words(text)) for text in predictions]
    expected = [[ngrams(caption_words(choice)) for choice in choices] for choices in references]
    documents = Counter(chain.from_iterable(set().union(*choices) for choices in expected))
    total = sum(score(ours, choices, documents, len(expected)) for ours, choices in zip(found, expected))
    return {"cider": 100 * total / len(predictions)}


def score(found: Counter[Ngram], references: list[Counter[Ngram]], documents: Counter[Ngram], sources: int) -> float:
    """Of one caption: the mean over its references."""
    ours, total = weights(found, documents, sources), 0.0
    for reference in references:
        theirs = weights(reference, documents, sources)
        difference = words(found) - words(reference)
        total += exp(-(difference**2) / (2 * SIGMA**2)) * sum(map(similarity, ours, theirs)) / LONGEST
    return SCALE * total / len(references)


def ngrams(words: list[str]) -> Counter[Ngram]:
    """The counts of n-grams of all lengths."""
    orders = range(1, LONGEST + 1)
    return Counter(tuple(words[at : at + order]) for order in orders for at in range(len(words) - order + 1))


def words(counts: Counter[Ngram]) -> int:
    """The length of a caption as coco-caption takes it for the penalty: the number of its bigrams."""
    return sum(number for ngram, number in counts.items() if len(ngram) == 2)


def weights(counts: Counter[Ngram], documents: Counter[Ngram], sources: int) -> Vector:
    """tf-idf: how often an n-gram occurs, times the logarithm of how few sources have it in a reference."""
    vector: Vector = [{} for _ in range(LONGEST)]
    for ngram, number in counts.items():
        vector[len(ngram) - 1][ngram] = number * (log(sources) - log(max(documents[ngram], 1)))
    return vector


def similarity(found: dict[Ngram, float], expected: dict[Ngram, float]) -> float:
    """The cosine, with the weights of the caption clipped to those of its reference: repeating a word gains nothing."""
    shared = sum(min(weight, expected[ngram]) * expected[ngram] for ngram, weight in found.items() if ngram in expected)
    norm = (sum(each**2 for each in found.values()) * sum(each**2 for each in expected.values())) ** 0.5
    return shared / norm if norm else 0.0
