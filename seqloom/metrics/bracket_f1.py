"""F1 of labelled brackets, in percent: constituents of a tree, right if label, beginning and end are (Parseval).

A tree is written as in Vinyals et al. 2015, "Grammar as a foreign language": (S (NP XX XX ) (VP XX ) ). A leaf stands
for a word with its tag, so tags are not counted. Brackets that are never closed end with the tree, and closing ones
that belong to none are left out, as there. Black et al. 1991; equal brackets count as often as they occur.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

HIGHER_IS_BETTER = True
TOKENS = re.compile(r"\([^\s()]*|\)|[^\s()]+")
Brackets = Counter[tuple[str, int, int]]  # label, first leaf, leaf after the last


def bracket_f1(predictions: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, float]:
    """Also precision, recall and the share of well-formed trees. The reference that agrees best counts."""
    right = predicted = expected = formed = 0
    for found, choices in zip(predictions, references, strict=True):
        ours = brackets(found)
        theirs = max(map(brackets, choices), key=lambda each: f1((ours & each).total(), ours.total(), each.total()))
        right, predicted, expected = (
            right + (ours & theirs).total(),
            predicted + ours.total(),
            expected + theirs.total(),
        )
        formed += is_tree(found)
    return {
        "bracket_f1": f1(right, predicted, expected),
        "bracket_precision": 100 * right / max(predicted, 1),
        "bracket_recall": 100 * right / max(expected, 1),
        "well_formed": 100 * formed / max(len(predictions), 1),
    }


def f1(right: int, predicted: int, expected: int) -> float:
    """The harmonic mean of precision and recall, in percent."""
    return 200 * right / max(predicted + expected, 1)


def brackets(tree: str) -> Brackets:
    """The constituents of a tree."""
    found: Brackets = Counter()
    leaves, begun = 0, list[tuple[str, int]]()
    for token in [*TOKENS.findall(tree), *")" * tree.count("(")]:
        if token.startswith("("):
            begun.append((token[1:], leaves))
        elif token != ")":
            leaves += 1
        elif begun:
            label, first = begun.pop()
            if leaves > first:  # an empty bracket has no place
                found[label, first, leaves] += 1
    return found


def is_tree(text: str) -> bool:
    """Whether all of it is one tree, every bracket labelled, not empty and closed."""
    depth, tokens, before = 0, TOKENS.findall(text), ""
    for place, token in enumerate(tokens):
        if token.startswith("("):
            depth += 1
            if token == "(" or (depth == 1 and place):
                return False
        elif token == ")":
            depth -= 1
            if depth < 0 or before.startswith("("):
                return False
        elif not depth:
            return False
        before = token
    return bool(tokens) and not depth
