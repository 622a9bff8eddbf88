"""Which kind of data it is, if not text on both sides: vectors with places, labels or values; stories with a question.

Text that merely contains numbers must not be taken for vectors: nearly all examples have to agree, "3,5" may be a
number with a decimal comma, and "05" is not a number.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from seqloom.data.codecs.numbers import Numbers
from seqloom.data.codecs.places import Places
from seqloom.errors import SeqloomError
from seqloom.types import Example

NEARLY = 0.99  # of the examples: bad lines are reported when the data is read
NUMBER = r"[+-]?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
VECTOR = re.compile(rf"{NUMBER}(?:,{NUMBER})*", re.ASCII)
ONE_NUMBER = re.compile(NUMBER, re.ASCII)
ONE_WRITTEN_NUMBER = re.compile(r"[+-]?\d+,\d+|[+-]?\d{1,3}(?:,\d{3})+", re.ASCII)  # "3,5" or "12,345,678"
LABELS = 1000  # at most; on average each must occur twice


@dataclass(frozen=True)
class Kind:
    """ "ring", "tour", "triangles", "order", "choice", "label", "value", "story", or a kind of text (`text_kinds`)."""

    name: str
    elements: float  # mean number of vectors, sentences or words of a source
    labels: int = 0  # different targets or tags


@dataclass(frozen=True)
class _Row:
    """An example whose source can be read as vectors."""

    elements: int
    width: int  # components of a vector
    certain: bool  # the source cannot be text
    repeats: bool  # all words of the target are in the source, which is text, then
    places: list[int]  # the target as places; empty if it is something else
    label: str  # the target as one word or number; empty if it is something else
    is_text: bool  # the target is a string


def detect_kind(examples: Sequence[Example]) -> Kind | None:
    """None for text on both sides, and for anything unknown."""
    least = NEARLY * len(examples)
    rows = [row for example in examples if (row := _row(example)) is not None]
    if not rows or len(rows) < least:
        return _story(examples, least)
    width = Counter(row.width for row in rows).most_common(1)[0][0]
    rows = [row for row in rows if row.width == width]
    if len(rows) < least or sum(row.repeats for row in rows) >= least:
        return None
    elements = sum(row.elements for row in rows) / len(rows)
    certain = sum(row.certain for row in rows) > 0.1 * len(rows)
    for name, (holds, needs_points, needs_certainty) in RULES.items():
        possible = elements >= 3 and (not needs_points or width == 2) and (not needs_certainty or certain)
        if possible and sum(map(holds, rows)) >= least:
            return Kind(name, elements)
    words = {row.label for row in rows}
    if not certain or sum(bool(row.label) for row in rows) < least:
        return None
    numbers = [word for word in words if ONE_NUMBER.fullmatch(word)]
    if len(words) <= min(LABELS, len(rows) // 2) and not any("." in word for word in numbers):
        # Words are classes. Values that are not strings may be classes or quantities: the user has to choose.
        return Kind("label", elements, len(words)) if all(row.is_text for row in rows) else None
    return Kind("value", elements) if len(numbers) >= NEARLY * len(words) else None


def is_text(examples: Sequence[Example]) -> bool:
    return all(isinstance(side, str) for each in examples for side in (each.source, each.target) if side is not None)


# Kinds of targets. A tour is a ring, too, and so on: the first rule that holds counts.


def _is_tour(row: _Row) -> bool:
    return _is_ring(row) and len(row.places) == row.elements + 1 and row.places[0] == 0


def _is_ring(row: _Row) -> bool:
    corners = row.places[:-1]
    return len(corners) >= 3 and row.places[-1] == corners[0] and len({*corners}) == len(corners)


def _is_triangles(row: _Row) -> bool:
    triples = [tuple(row.places[start : start + 3]) for start in range(0, len(row.places), 3)]
    return len(row.places) >= 3 and len({*triples}) == len(triples) and all(map(_ascends, triples))


def _ascends(triple: tuple[int, ...]) -> bool:
    return len(triple) == 3 and triple[0] < triple[1] < triple[2]


def _is_order(row: _Row) -> bool:
    return len(row.places) == row.elements and len({*row.places}) == row.elements


def _is_choice(row: _Row) -> bool:
    return bool(row.places) and not row.label and len({*row.places}) == len(row.places)


RULES: dict[str, tuple[Callable[[_Row], bool], bool, bool]] = {  # the rule; needs points; needs certain vectors
    "tour": (_is_tour, True, False),
    "ring": (_is_ring, True, False),
    "triangles": (_is_triangles, True, False),
    "order": (_is_order, False, False),
    "choice": (_is_choice, False, True),
}


# Reading the sides of an example


def _row(example: Example) -> _Row | None:
    found = _vectors(example.source)
    if found is None:
        return None
    elements, width, certain = found
    texts = isinstance(example.source, str) and isinstance(example.target, str)
    repeats = texts and {*example.target.split()} <= {*example.source.split()}
    places, label = _places(example.target, elements), _word(example.target)
    return _Row(elements, width, certain, repeats, places, label, isinstance(example.target, str))


def _vectors(source: Any) -> tuple[int, int, bool] | None:
    """How many vectors, of how many components, and whether the source cannot be text; None if it is something else."""
    if not isinstance(source, str):
        try:
            elements, width = Numbers().fit([source]).encode(source).shape
        except (SeqloomError, TypeError, ValueError):
            return None
        return elements, width, True
    words = source.split()
    if not all(map(VECTOR.fullmatch, words)) or len({word.count(",") for word in words}) != 1:
        return None
    width = words[0].count(",") + 1
    return len(words), width, width > 1 and not all(map(ONE_WRITTEN_NUMBER.fullmatch, words))


def _places(target: Any, elements: int) -> list[int]:
    """The places of a target, all of them among the elements; else none."""
    try:
        places = Places().normal(target)
    except SeqloomError:
        return []
    return places if all(place < elements for place in places) else []


def _word(target: Any) -> str:
    """A target of one word or number as text; else an empty one."""
    if isinstance(target, str):
        return target if len(target.split()) == 1 else ""
    number = target.item() if getattr(target, "ndim", None) == 0 else target  # of NumPy or torch
    return str(number) if isinstance(number, (int, float)) else ""


def _story(examples: Sequence[Example], least: float) -> Kind | None:
    counts = [count for example in examples if (count := _sentences(example.source)) and _word(example.target)]
    answers = {_word(example.target) for example in examples}
    if not counts or len(counts) < least or 2 * len(answers) > len(examples):
        return None
    elements = sum(counts) / len(counts)
    return Kind("story", elements, len(answers))


def _sentences(source: Any) -> int:
    """How many sentences a story with a question at its end has; 0 for anything else."""
    if isinstance(source, (list, tuple)) and all(isinstance(each, str) for each in source):
        source = " ".join(source)
    if not isinstance(source, str) or not source.rstrip().endswith("?"):
        return 0
    sentences = re.split(r"(?<=[.?!])\s+", source.strip())
    return len(sentences) if any(each.endswith(".") for each in sentences[:-1]) else 0
