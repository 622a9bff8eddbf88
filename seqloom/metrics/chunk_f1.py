"""F1 of chunks, in percent: spans of tags such as B-NP I-NP, right if type, beginning and end are.

Tags are read as conlleval does (Tjong Kim Sang & Buchholz 2000, section 3), for the schemes IOB, IOB2 (BIO), IOE and
IOBES. A tag that is not of them is a chunk of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from seqloom.metrics.check import check_tags

HIGHER_IS_BETTER = True
OUTSIDE = "O"
SCHEME = re.compile(r"[BIESO](-|$)")
Chunk = tuple[str, int, int]  # type, first position, position after the last


def chunk_f1(predictions: list[str], references: list[list[str]]) -> dict[str, float]:
    """Also precision and recall. With several references the one that agrees best counts."""
    right = predicted = expected = 0
    for found, choices in check_tags("chunk_f1", predictions, references):
        ours, sets = {*chunks(found)}, [{*chunks(choice)} for choice in choices]
        theirs = max(sets, key=lambda each: f1(len(ours & each), len(ours), len(each)))
        right, predicted, expected = right + len(ours & theirs), predicted + len(ours), expected + len(theirs)
    return {
        "chunk_f1": f1(right, predicted, expected),
        "chunk_precision": 100 * right / max(predicted, 1),
        "chunk_recall": 100 * right / max(expected, 1),
    }


def f1(right: int, predicted: int, expected: int) -> float:
    """The harmonic mean of precision and recall, in percent."""
    return 200 * right / max(predicted + expected, 1)


def chunks(tags: Sequence[str]) -> list[Chunk]:
    """The chunks of a sentence, in order."""
    found: list[Chunk] = []
    before = OUTSIDE, ""
    for place, tag in enumerate(tags):
        prefix, kind = (tag[0], tag[2:]) if SCHEME.match(tag) else ("-", tag)
        if prefix in "IE" and before[0] in "BI" and kind == before[1]:
            found[-1] = kind, found[-1][1], place + 1
        elif tag != OUTSIDE:
            found.append((kind, place, place + 1))
        before = prefix, kind
    return found
