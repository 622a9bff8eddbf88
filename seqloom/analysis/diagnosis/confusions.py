"""Which labels or tags are taken for which others, where there are few."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from seqloom.analysis.diagnosis.answers import Answer, words_of
from seqloom.analysis.diagnosis.finding import Finding

FEW = 50  # different targets, or words of targets: else they are no labels
SHOWN = 3  # pairs
OFTEN = 5  # times: rarer confusions may be chance
MUCH = 0.1  # of all errors


@dataclass(frozen=True)
class Confusions:
    """Errors by (reference, output), most frequent first."""

    errors: int
    pairs: list[tuple[str, str, int]]

    def figures(self) -> dict[str, Any]:
        return {"errors": self.errors, "pairs": [list(pair) for pair in self.pairs]}


def confusions(answers: Sequence[Answer]) -> Confusions | None:
    """Of whole targets where there are few, else of their words if outputs have as many; None for other tasks."""
    pairs = [(str(each.reference), str(each.output)) for each in answers]
    if not are_few([[reference] for reference, _ in pairs]):
        split = [(words_of(reference), words_of(output)) for reference, output in pairs]
        if any(len(one) != len(other) for one, other in split) or not are_few([words for words, _ in split]):
            return None
        pairs = [pair for one, other in split for pair in zip(one, other)]
    wrong = Counter(pair for pair in pairs if pair[0] != pair[1])
    return Confusions(wrong.total(), [(*pair, count) for pair, count in wrong.most_common(SHOWN)])


def are_few(targets: Sequence[Sequence[str]]) -> bool:
    """Few, and each several times on average."""
    distinct, total = len({word for words in targets for word in words}), sum(map(len, targets))
    return distinct <= FEW and 2 * distinct <= total


def confused_labels(found: Confusions) -> Finding | None:
    shown = [pair for pair in found.pairs if pair[2] >= max(OFTEN, MUCH * found.errors)]
    if not shown:
        return None
    named = ", ".join(f'"{output}" for "{reference}" ({count} times)' for reference, output, count in shown)
    return Finding(
        "confused-labels",
        "hint",
        f"Most confused of {found.errors:,} errors: {named}.",
        "Look at these examples: their labels may overlap, or one of them may be rare in the training data.",
    )
