"""Delayed copy: a stream of letters in which a mark asks for the letter two positions before it.

"cad!bbc!e" -> "ab". A letter can be written at its mark, and not before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from string import ascii_lowercase

import numpy as np

from seqloom.data.generators.sampling import check_range, distinct
from seqloom.types import Example

MARK = "!"


def delayed_copy(
    count: int, seed: int = 1, *, symbols: int = 8, shortest: int = 8, longest: int = 16, back: int = 2
) -> list[Example]:
    """`count` distinct streams of `shortest` to `longest` letters and marks, all lengths equally likely.

    A mark is at least `back` letters after the last one. A smaller count gives the first of them.
    """
    check_range("delayed_copy", "symbols", symbols, 2, len(ascii_lowercase))
    check_range("delayed_copy", "back", back, 1)
    check_range("delayed_copy", "shortest", shortest, back + 1)
    check_range("delayed_copy", "longest", longest, shortest)
    check_range("delayed_copy", "count", count, 1, symbols ** (shortest - 1) // 4)
    return list(islice(distinct(draws(seed, symbols, shortest, longest, back)), count))


def draws(seed: int, symbols: int, shortest: int, longest: int, back: int) -> Iterator[Example]:
    """Streams without end, not all distinct. From `back` letters after a mark on, one position in three is the next."""
    random = np.random.default_rng(seed)
    while True:
        length = int(random.integers(shortest, longest, endpoint=True))
        letters = random.integers(0, symbols, size=length)
        wants = random.random(length) < 1 / 3
        stream: list[str] = []
        since = 0
        for letter, wanted in zip(letters.tolist(), wants.tolist()):
            marks = since >= back and (wanted or (MARK not in stream and len(stream) == length - 1))
            stream.append(MARK if marks else ascii_lowercase[letter])
            since = 0 if marks else since + 1
        places = [place for place, each in enumerate(stream) if each == MARK]
        yield Example("".join(stream), "".join(stream[place - back] for place in places))


def earliest(source: str) -> list[int]:
    """How many tokens must have been read before each token of the output is known."""
    return [place + 1 for place, each in enumerate(source) if each == MARK]


def delays(sources: Sequence[str], times: Sequence[Sequence[int]]) -> list[int]:
    """How many source tokens later than possible each output token was written, in outputs of the right length."""
    return [
        time - known
        for source, read in zip(sources, times, strict=True)
        if len(read) == source.count(MARK)
        for time, known in zip(read, earliest(source))
    ]
