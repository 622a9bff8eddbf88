"""Sums and differences with meaningless letters in between: "3e36d9-h1h39c" -> "3230".

The "Arith" of Jozefowicz, Zaremba & Sutskever 2015: up to three letters follow each character of the source.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from string import ascii_lowercase

import numpy as np

from seqloom.data.generators.addition import operand
from seqloom.data.generators.sampling import check_range, distinct
from seqloom.types import Example


def arithmetic(count: int, seed: int = 1, *, digits: int = 5, letters: int = 3) -> list[Example]:
    """`count` distinct ones; at most `letters` follow each character. A smaller count gives the first of them."""
    check_range("arithmetic", "digits", digits, 1, 18)
    check_range("arithmetic", "letters", letters, 0)
    check_range("arithmetic", "count", count, 1, 10 ** (2 * digits) // 4)
    return list(islice(distinct(draws(seed, digits, letters)), count))


def draws(seed: int, digits: int, letters: int) -> Iterator[Example]:
    """Examples without end, not all distinct."""
    random = np.random.default_rng(seed)
    while True:
        first, second = operand(random, digits), operand(random, digits)
        plus = bool(random.integers(0, 2))
        source = insert_letters(random, f"{first}{'+' if plus else '-'}{second}", letters)
        yield Example(source, str(first + second if plus else first - second))


def insert_letters(random: np.random.Generator, text: str, letters: int) -> str:
    """The text with random letters after its characters."""
    counts = random.integers(0, letters, size=len(text), endpoint=True).tolist()
    drawn = iter([ascii_lowercase[index] for index in random.integers(0, 26, size=sum(counts))])
    return "".join(one + "".join(islice(drawn, count)) for one, count in zip(text, counts))
