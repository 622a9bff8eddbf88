"""Where errors concentrate: in long or short sources, and in rare or frequent words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from rapidfuzz.distance import Levenshtein

from seqloom.analysis.diagnosis.answers import Answer, words_of
from seqloom.analysis.diagnosis.commands import Commands
from seqloom.analysis.diagnosis.finding import Finding, percent

QUARTERS = 4  # bins of about equally many examples
COUNTS = (0, 1, 10, 100)  # lower ends of the bins of frequency
ENOUGH = 20  # examples or words in a bin: an error rate of fewer is chance
CONCENTRATED = 1.5  # times the error over all
RARE = 10  # occurrences in the training data
WORTH = 0.05  # of the words: rarer trouble is not worth a training


@dataclass(frozen=True)
class Bin:
    """Sources of some lengths, or words of some frequencies."""

    low: int
    high: int | None  # None: no upper end
    count: int
    error: float

    @property
    def name(self) -> str:
        if self.high is None:
            return f"{self.low:,} or more"
        return f"{self.low:,}" if self.low == self.high else f"{self.low:,} to {self.high:,}"


@dataclass(frozen=True)
class Errors:
    """Error rates in bins."""

    overall: float
    bins: list[Bin]

    def figures(self) -> dict[str, Any]:
        return asdict(self)

    def worst(self) -> Bin | None:
        """The bin in which errors concentrate, if they do in one."""
        bins = [each for each in self.bins if each.count >= ENOUGH]
        worst = max(bins, key=lambda each: each.error, default=None)
        return worst if worst and len(bins) > 1 and worst.error >= CONCENTRATED * self.overall > 0 else None


def by_length(answers: Sequence[Answer]) -> Errors:
    """Edits per token of the reference, in quarters of the sources by length."""
    lengths = np.array([each.length for each in answers])
    edges = np.unique(np.quantile(lengths, np.linspace(0, 1, QUARTERS + 1), method="lower"))
    bins = []
    for number, low in enumerate(edges[:-1] if len(edges) > 1 else edges):
        last = number + 2 >= len(edges)
        high = int(lengths.max() if last else edges[number + 1] - 1)
        bins.append(error_of([each for each in answers if low <= each.length <= high], int(low), high))
    return Errors(error_of(answers, 0, None).error, bins)


def error_of(answers: Sequence[Answer], low: int, high: int | None) -> Bin:
    expected = sum(len(each.expected) for each in answers)
    return Bin(low, high, len(answers), sum(each.edits for each in answers) / max(expected, 1))


def by_frequency(answers: Sequence[Answer], counts: Counter[str]) -> Errors:
    """The share of the words of references that outputs lack, by how often the training data has them."""
    wrong, words = Counter[int](), Counter[int]()
    for each in answers:
        expected, found = words_of(each.reference), words_of(each.output)
        right = {place for block in Levenshtein.opcodes(expected, found) if block.tag == "equal"
                 for place in range(block.src_start, block.src_end)}  # fmt: skip
        for place, word in enumerate(expected):
            low = max(low for low in COUNTS if low <= counts[word])
            words[low] += 1
            wrong[low] += place not in right
    highs = [*(low - 1 for low in COUNTS[1:]), None]
    bins = [Bin(low, high, words[low], wrong[low] / words[low]) for low, high in zip(COUNTS, highs) if words[low]]
    return Errors(wrong.total() / max(words.total(), 1), bins)


def errors_by_length(errors: Errors, commands: Commands) -> Finding | None:
    worst = errors.worst()
    if worst is None:
        return None
    longest = worst is errors.bins[-1]
    return Finding(
        "errors-by-length",
        "hint",
        f"Errors concentrate in sources of {worst.name} tokens: their token error rate is {percent(worst.error)}, "
        f"over all {percent(errors.overall)}.",
        "Add training examples of this length" + (", or train longer: long ones are learned last." if longest else "."),
        commands.longer() if longest else "",
    )


def errors_by_frequency(errors: Errors, commands: Commands, units: str) -> Finding | None:
    """Only rare words: frequent ones that are wrong say nothing about frequency."""
    worst = errors.worst()
    total = sum(each.count for each in errors.bins)
    if worst is None or worst.low >= RARE or worst.count < WORTH * total:
        return None
    times = f"the training data has {worst.name} times" if worst.low else "the training data does not have"
    advice, command = "Add training examples that have such words.", ""
    if units == "word":
        advice, command = "Write rare words in byte pairs.", commands.byte_pairs()
    return Finding(
        "errors-by-frequency",
        "hint",
        f"Errors concentrate in rare words: of those that {times}, {percent(worst.error)} are wrong, over all "
        f"{percent(errors.overall)}.",
        advice,
        command,
    )
