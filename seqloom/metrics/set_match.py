"""Outputs as multisets: predictions with the same elements as their reference, in any order, in percent.

An element is an entry of a list or a word of a text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

HIGHER_IS_BETTER = True


def set_match(predictions: Sequence[Any], references: Sequence[Sequence[Any]]) -> dict[str, float]:
    """set_f1 is the harmonic mean of precision and recall of the elements."""
    if not predictions:
        return {"set_match": 0.0, "set_f1": 0.0}
    rows = zip(predictions, references, strict=True)
    pairs = [(elements(one), list(map(elements, several))) for one, several in rows]
    matches = [max(one == other for other in several) for one, several in pairs]
    overlaps = [max(f1(one, other) for other in several) for one, several in pairs]
    return {"set_match": 100 * sum(matches) / len(pairs), "set_f1": 100 * sum(overlaps) / len(pairs)}


def elements(value: Any) -> Counter[Any]:
    return Counter(value.split() if isinstance(value, str) else value)


def f1(one: Counter[Any], other: Counter[Any]) -> float:
    """2 |A and B| / (|A| + |B|); 1 if both are empty."""
    size = one.total() + other.total()
    return 2 * (one & other).total() / size if size else 1.0
