"""F1 of labelled brackets, in percent: constituents of a tree, right if label, beginning and end are (Parseval).

Black et al. 1991, by the rules of evalb (Sekine & Collins 1997) with the parameters COLLINS.prm: punctuation and the
root TOP do not count, ADVP and PRT are equal, equal brackets count as often as both trees have them.

Two rules are ours. Which words are punctuation is read from the reference, as predicted trees may have other tags, or
XX for all of them. And where evalb leaves out a sentence whose words differ, here all brackets of its reference are
missed, so that a model gains nothing by failing. Brackets that do not balance are repaired as in Vinyals et al. 2015:
those that are never closed end with the tree, and closing ones that belong to none are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from seqloom.metrics.trees import Step, scan, words_of

HIGHER_IS_BETTER = True
PUNCTUATION = frozenset((",", ":", "``", "''", ".", "-NONE-"))  # tags
ROOT, EQUAL = "TOP", {"PRT": "ADVP"}
Brackets = Counter[tuple[str, int, int]]  # label, first word, word after the last


def bracket_f1(predictions: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, float]:
    """Also precision, recall, the share of trees with all brackets right, and that of well-formed trees.

    Well-formed is a tree over the words of its reference. The reference that agrees best counts.
    """
    right = predicted = expected = complete = formed = 0
    for prediction, choices in zip(predictions, references, strict=True):
        found, problem = scan(prediction)
        best = max((compare(found, scan(choice)[0]) for choice in choices), key=lambda counts: f1(*counts))
        right, predicted, expected = (total + count for total, count in zip((right, predicted, expected), best))
        is_tree = not problem and any(words_of(found) == words_of(scan(choice)[0]) for choice in choices)
        formed += is_tree
        complete += is_tree and best[0] == best[1] == best[2]
    return {
        "bracket_f1": f1(right, predicted, expected),
        "bracket_precision": 100 * right / max(predicted, 1),
        "bracket_recall": 100 * right / max(expected, 1),
        "complete": 100 * complete / max(len(predictions), 1),
        "well_formed": 100 * formed / max(len(predictions), 1),
    }


def compare(prediction: list[Step], reference: list[Step]) -> tuple[int, int, int]:
    """How many brackets are right, how many there are in the prediction, and how many in the reference."""
    tags = [step.label for step in reference if step.kind == "word"]
    ignored = {place for place, tag in enumerate(tags) if tag in PUNCTUATION}
    theirs = brackets(reference, ignored)
    if words_of(prediction) != words_of(reference):
        return 0, 0, theirs.total()
    ours = brackets(prediction, ignored)
    return (ours & theirs).total(), ours.total(), theirs.total()


def f1(right: int, predicted: int, expected: int) -> float:
    """The harmonic mean of precision and recall, in percent."""
    return 200 * right / max(predicted + expected, 1)


def brackets(steps: Sequence[Step], ignored: Collection[int] = ()) -> Brackets:
    """The constituents of a tree, as if some of its words were not there; those that are empty then do not count."""
    found: Brackets = Counter()
    place, words, begun = 0, 0, list[tuple[str, int]]()
    for kind, label, _ in steps:
        if kind == "word":
            words += place not in ignored
            place += 1
        elif kind == "open":
            begun.append((EQUAL.get(label, label), words))
        else:
            name, first = begun.pop()
            if words > first and name != ROOT and name not in PUNCTUATION:
                found[name, first, words] += 1
    return found
