"""Triangulations as triples of places: exact ones, and the triangles found, in percent.

Vinyals, Fortunato & Jaitly 2015, section 4.3: the order of triangles and of their corners does not matter.
"""

from __future__ import annotations

from typing import Any

from seqloom.metrics.check import check_pairs

HIGHER_IS_BETTER = True


def triangles(predictions: list[Any], references: list[list[Any]]) -> dict[str, float]:
    """With several references the one with most triangles found counts."""
    check_pairs("triangles", predictions, references)
    right = found = wanted = 0
    for prediction, choices in zip(predictions, references):
        ours = triples(prediction)
        expected = max(
            map(triples, choices), key=lambda theirs: (ours == theirs, len(ours & theirs) / len(theirs or "-"))
        )
        right += bool(ours) and ours == expected
        found, wanted = found + len(ours & expected), wanted + len(expected)
    return {"triangles": 100.0 * right / len(predictions), "triangle_coverage": 100.0 * found / max(wanted, 1)}


def triples(value: Any) -> set[frozenset[str]]:
    """The triangles of a list of places or of text, three by three; fewer at the end are ignored."""
    places = [str(each) for each in (value.split() if isinstance(value, str) else value)]
    found = {frozenset(places[at : at + 3]) for at in range(0, len(places), 3)}
    return {each for each in found if len(each) == 3}
