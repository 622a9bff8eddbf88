"""Outputs as sets: how many have the elements of their reference, in whatever order and as often.

An element is an entry of a list, or a word of a text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

HIGHER_IS_BETTER = True


def set_match(predictions: Sequence[Any], references: Sequence[Sequence[Any]]) -> dict[str, float]:
    """Per cent. set_f1 is the harmonic mean of how many elements written are right and how many right were written."""
    if not predictions:
        return {"set_match": 0.0, "set_f1": 0.0}
    pairs = [(counted(one), list(map(counted, several))) for one, several in zip(predictions, references, strict=True)]
    matches = [max(one == other for other in several) for one, several in pairs]
    overlaps = [max(shared(one, other) for other in several) for one, several in pairs]
    return {"set_match": 100 * sum(matches) / len(pairs), "set_f1": 100 * sum(overlaps) / len(pairs)}


def counted(value: Any) -> Counter[Any]:
    return Counter(value.split() if isinstance(value, str) else value)


def shared(one: Counter[Any], other: Counter[Any]) -> float:
    """2 |A and B| / (|A| + |B|); nothing is like nothing."""
    size = one.total() + other.total()
    return 2 * (one & other).total() / size if size else 1.0
