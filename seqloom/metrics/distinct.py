"""Distinct-1 and distinct-2: how many different words, and pairs of words, outputs have of all they have, in percent.

Li et al. 2016, "A diversity-promoting objective function", section 5.2: over all outputs together. A model that
always gives the same reply has next to none. References do not count, and more outputs have fewer different words:
compare equal numbers of them.
"""

from __future__ import annotations

from seqloom.metrics.check import check_pairs

HIGHER_IS_BETTER = True


def distinct(predictions: list[str], references: list[list[str]]) -> dict[str, float]:
    """The mean of both as "distinct". Words are separated by white space."""
    check_pairs("distinct", predictions, references)
    lines = [text.split() for text in predictions]
    figures = {f"distinct_{order}": share_of_different(lines, order) for order in (1, 2)}
    return {"distinct": sum(figures.values()) / len(figures), **figures}


def share_of_different(lines: list[list[str]], order: int) -> float:
    """The different n-grams of one length among all, in percent; 0 where there are none."""
    found = [tuple(line[at : at + order]) for line in lines for at in range(len(line) - order + 1)]
    return 100 * len(set(found)) / max(len(found), 1)
