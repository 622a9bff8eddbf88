"""Outputs that are empty, too short, too long, always the same, or go round in circles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from seqloom.analysis.diagnosis.answers import Answer
from seqloom.analysis.diagnosis.commands import Commands
from seqloom.analysis.diagnosis.finding import Finding, percent

EMPTY = 0.01  # of the outputs: references are hardly ever empty
SHORT, LONG = 0.9, 1.1  # times the length of the references: good models differ by a few per cent
LOOPING = 0.02  # of the outputs
SAME, TWICE = 0.5, 2.0  # of the outputs, and times as often as among the references
REPEATS, COVERS = 3, 4  # a span that comes three times in a row and covers four tokens is a loop: not "000", but "0000"
LONGEST_SPAN = 10  # tokens: longer loops are hardly ever closed within an output


@dataclass(frozen=True)
class Outputs:
    """Shares of the outputs, compared with their references."""

    count: int
    empty: float  # where the reference is not
    length_ratio: float  # tokens of all outputs / tokens of all references
    looping: float  # with a longer loop than the reference
    same: float  # the most frequent output
    same_expected: float  # the same output among the references
    right: float
    error: float  # edits per token of the references

    @classmethod
    def measure(cls, answers: Sequence[Answer]) -> Outputs:
        count, expected = len(answers), sum(len(each.expected) for each in answers)
        ((same, times),) = Counter(tuple(each.tokens) for each in answers).most_common(1)
        return cls(
            count,
            sum(not len(each.tokens) and bool(len(each.expected)) for each in answers) / count,
            sum(len(each.tokens) for each in answers) / max(expected, 1),
            sum(loop_length(each.tokens) > loop_length(each.expected) for each in answers) / count,
            times / count,
            sum(tuple(each.expected) == same for each in answers) / count,
            sum(not each.edits for each in answers) / count,
            sum(each.edits for each in answers) / max(expected, 1),
        )

    def figures(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        empty = f"{percent(self.empty)} are empty" if self.empty else "none is empty"
        loops = f"{percent(self.looping)} repeat themselves" if self.looping else "none repeats itself"
        return (
            f"Of {self.count:,} outputs {percent(self.right)} are right; the token error rate is {percent(self.error)}."
            f" They are {self.length_ratio:.2f} times as long as the references, {empty}, {loops}."
        )


def loop_length(tokens: Sequence[int]) -> int:
    """The most tokens that a loop covers: a span of up to ten tokens, at least three times in a row."""
    longest = 0
    for span in range(1, min(LONGEST_SPAN, len(tokens) // REPEATS) + 1):
        run = 0  # how many tokens in a row equal the one a span before
        for token, before in zip(tokens[span:], tokens):
            run = run + 1 if token == before else 0
            covered = run + span
            if covered >= max(REPEATS * span, COVERS):
                longest = max(longest, covered)
    return longest


def empty_outputs(outputs: Outputs, commands: Commands) -> Finding | None:
    if outputs.empty <= EMPTY:
        return None
    return Finding(
        "empty-outputs",
        "problem",
        f"{percent(outputs.empty)} of the outputs are empty, though their references are not.",
        "Ask for at least one token; a model that was trained longer rarely needs this.",
        commands.search("minimum_length=1"),
    )


def wrong_lengths(outputs: Outputs, commands: Commands) -> Finding | None:
    if SHORT <= outputs.length_ratio <= LONG:
        return None
    short = outputs.length_ratio < SHORT
    return Finding(
        "short-outputs" if short else "long-outputs",
        "problem",
        f"The outputs are too {'short' if short else 'long'}: {outputs.length_ratio:.2f} times the references.",
        f"{'Raise' if short else 'Lower'} the length penalty of the search, or train longer.",
        commands.search(f"length_penalty={1.5 if short else 0.5}"),
    )


def repeated_outputs(outputs: Outputs, commands: Commands) -> Finding | None:
    if outputs.looping <= LOOPING:
        return None
    return Finding(
        "repeated-outputs",
        "problem",
        f"{percent(outputs.looping)} of the outputs repeat themselves where their references do not.",
        "Forbid n-grams that come twice, and train longer; with copying, set coverage.",
        commands.search("no_repeat=3"),
    )


def same_outputs(outputs: Outputs, commands: Commands) -> Finding | None:
    """A model that ignores its source writes what is likeliest without one."""
    if outputs.count < 2 or outputs.same < max(SAME, TWICE * outputs.same_expected):
        return None
    return Finding(
        "same-outputs",
        "problem",
        f"{percent(outputs.same)} of the outputs are the same; of the references {percent(outputs.same_expected)} are.",
        "The model does not look at its source yet: train longer, and compare sources and targets of the data.",
        commands.longer(),
    )
