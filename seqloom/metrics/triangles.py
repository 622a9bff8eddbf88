"""Triangulations as triples of places: how many are right, and how many triangles were found, in percent.

Vinyals, Fortunato & Jaitly 2015, section 4.3: neither the order of triangles counts nor that of their corners.
"""

from __future__ import annotations

from typing import Any

from seqloom.metrics.edit_rate import check_pairs

HIGHER_IS_BETTER = True


def triangles(predictions: list[Any], references: list[list[Any]]) -> dict[str, float]:
    """Of several references that counts of which most was found."""
    check_pairs("triangles", predictions, references)
    right = found = there = 0
    for prediction, choices in zip(predictions, references):
        ours = triples(prediction)
        expected = max(
            map(triples, choices), key=lambda theirs: (ours == theirs, len(ours & theirs) / len(theirs or "-"))
        )
        right += bool(ours) and ours == expected
        found, there = found + len(ours & expected), there + len(expected)
    return {"triangles": 100.0 * right / len(predictions), "triangle_coverage": 100.0 * found / max(there, 1)}


def triples(value: Any) -> set[frozenset[str]]:
    """The triangles of a list of places or of text, three by three; a rest of fewer is none."""
    places = [str(each) for each in (value.split() if isinstance(value, str) else value)]
    found = {frozenset(places[at : at + 3]) for at in range(0, len(places), 3)}
    return {each for each in found if len(each) == 3}
