"""Expressions and their parse trees, in which products bind first: "2 + 3 * 4" -> "(S (SUM (NUM 2) (OP +) (PRODUCT ...

Small stand-ins for sentences and their trees: a source is words between spaces, and a bracket is a word like any other.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from seqloom.data.generators.sampling import check_range, distinct
from seqloom.metrics.trees import spell
from seqloom.types import Example

PRODUCTS, GROUPS = 0.4, 0.3  # how often a term is a product, and a factor a group, where one may be


def expressions(count: int, seed: int = 1, *, depth: int = 1, longest: int = 3) -> list[Example]:
    """`count` distinct ones: sums and products of 2 to `longest` parts, brackets within each other up to `depth`.

    A smaller count gives the first of them.
    """
    check_range("expressions", "depth", depth, 0, 5)
    check_range("expressions", "longest", longest, 2, 5)
    check_range("expressions", "count", count, 1, 1_000_000)
    return list(islice(distinct(draws(seed, depth, longest)), count))


def draws(seed: int, depth: int, longest: int) -> Iterator[Example]:
    """Examples without end, not all distinct."""
    random = np.random.default_rng(seed)
    while True:
        words, tree = joined(random, "SUM", depth, longest)
        yield Example(" ".join(words), f"(S {tree})")


def joined(random: np.random.Generator, label: str, depth: int, longest: int) -> tuple[list[str], str]:
    """A sum of terms, or a product of factors: its words, and its tree."""
    words, trees = list[str](), list[str]()
    for place in range(int(random.integers(2, longest, endpoint=True))):
        if place:
            operator = "*" if label == "PRODUCT" else str(random.choice(["+", "-"]))
            words.append(operator)
            trees.append(f"(OP {operator})")
        inner, tree = term(random, depth, longest) if label == "SUM" else factor(random, depth, longest)
        words += inner
        trees.append(tree)
    return words, f"({label} {' '.join(trees)})"


def term(random: np.random.Generator, depth: int, longest: int) -> tuple[list[str], str]:
    """A product, or a single factor."""
    return joined(random, "PRODUCT", depth, longest) if random.random() < PRODUCTS else factor(random, depth, longest)


def factor(random: np.random.Generator, depth: int, longest: int) -> tuple[list[str], str]:
    """A digit, or a sum in brackets."""
    if depth and random.random() < GROUPS:
        words, tree = joined(random, "SUM", depth - 1, longest)
        opening, closing = (f"({spell(bracket)} {spell(bracket)})" for bracket in "()")
        return ["(", *words, ")"], f"(GROUP {opening} {tree} {closing})"
    digit = str(random.integers(0, 10))
    return [digit], f"(NUM {digit})"
