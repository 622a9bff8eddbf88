"""METEOR: words matched one to one, exactly or by their stems, with a penalty for matches out of order; in percent.

Denkowski & Lavie 2014, section 2, METEOR 1.5 for English with the stages "exact" and "stem": the harmonic mean of
precision and recall of weighted matches, times 1 - gamma (chunks / matches)^beta. Of several references the one with
the highest score counts, and the figure is that of all counts together. Left out are the other stages, paraphrases
and synonyms (which may be given to `score`), and the lower weight of function words (delta is 0.5); stems are
Porter's. Compare figures only with those of the same variant: those of all stages are higher.

Alignments are those of the paper. The program (meteor-1.5.jar -m "exact stem" -w "1.0 0.6" -p "0.85 0.2 0.6 0.5")
leaves out some matches of stems where a word has several; its score differs for 14 of 1,000 captions of Flickr8k, by
0.02 in all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from seqloom.metrics.caption_words import caption_words
from seqloom.metrics.check import check_pairs
from seqloom.metrics.porter import stem
from seqloom.metrics.word_alignment import Stage, align

HIGHER_IS_BETTER = True
WEIGHTS = (1.0, 0.6, 0.8)  # of exact words, stems, synonyms
STAGES: tuple[Stage, ...] = (lambda word: (word,), lambda word: (stem(word),))


@dataclass(frozen=True)
class Settings:
    """The defaults are those of METEOR 1.5 for English, ranking; (0.9, 3.0, 0.5) those of Lavie & Agarwal 2007."""

    alpha: float = 0.85  # the weight of recall
    beta: float = 0.2  # the shape of the penalty
    gamma: float = 0.6  # its size
    weights: tuple[float, ...] = WEIGHTS


@dataclass(frozen=True)
class Statistics:
    """What is counted in a sentence, and added up over a corpus."""

    matches: tuple[int, ...] = ()  # by stage
    chunks: int = 0
    found: int = 0  # words
    expected: int = 0

    def __add__(self, other: Statistics) -> Statistics:
        matches = (one + another for one, another in zip(self.matches or (0,) * len(other.matches), other.matches))
        lengths = self.found + other.found, self.expected + other.expected
        return Statistics(tuple(matches), self.chunks + other.chunks, *lengths)

    def score(self, settings: Settings) -> float:
        """In [0, 1]; 0 without a match."""
        total = sum(self.matches)
        if not total:
            return 0.0
        weighted = sum(weight * number for weight, number in zip(settings.weights, self.matches))
        precision, recall = weighted / self.found, weighted / self.expected
        mean = precision * recall / (settings.alpha * precision + (1 - settings.alpha) * recall)
        return mean * (1 - settings.gamma * (self.chunks / total) ** settings.beta)


def meteor(predictions: list[str], references: list[list[str]]) -> dict[str, float]:
    """Of words as in captions: lower case, without punctuation."""
    return {"meteor": score(predictions, references)}


def score(
    predictions: list[str],
    references: list[list[str]],
    settings: Settings | None = None,
    synonyms: Stage | None = None,
) -> float:
    """With other settings, or with synonyms: the sets that a word belongs to, in WordNet its synsets."""
    check_pairs("meteor", predictions, references)
    settings = settings or Settings()
    stages = STAGES if synonyms is None else (*STAGES, synonyms)
    total = Statistics()
    for prediction, choices in zip(predictions, references):
        found = caption_words(prediction)
        counted = [count(found, caption_words(choice), stages) for choice in choices]
        total += max(counted, key=lambda each: each.score(settings))
    return 100 * total.score(settings)


def count(found: Sequence[str], expected: Sequence[str], stages: Sequence[Stage] = STAGES) -> Statistics:
    """The statistics of one sentence and one reference."""
    alignment = align(found, expected, stages)
    is_whole = alignment.chunks == 1 and sum(alignment.matches) == len(found) == len(expected)
    chunks = 0 if is_whole else alignment.chunks  # all words in order: no penalty
    return Statistics(alignment.matches, chunks, len(found), len(expected))
