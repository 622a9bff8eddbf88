"""Delayed copy: a stream of letters in which a mark, now and then, asks for the letter two places before it.

"cad!bbc!e" -> "ab". Before the mark nobody knows that the letter is wanted: who writes as early as can be writes at the
mark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from string import ascii_lowercase

import numpy as np

from seqloom.data.generators.drawing import distinct, expect
from seqloom.types import Example

MARK = "!"


def delayed_copy(
    count: int, seed: int = 1, *, symbols: int = 8, shortest: int = 8, longest: int = 16, back: int = 2
) -> list[Example]:
    """So many different streams of so many letters, marks among them; each length is as likely.

    A mark stands at least `back` letters after the one before. Fewer of the same seed are the first of them.
    """
    expect("delayed_copy", "symbols", symbols, 2, len(ascii_lowercase))
    expect("delayed_copy", "back", back, 1)
    expect("delayed_copy", "shortest", shortest, back + 1)
    expect("delayed_copy", "longest", longest, shortest)
    expect("delayed_copy", "count", count, 1, symbols ** (shortest - 1) // 4)
    return list(islice(distinct(draws(seed, symbols, shortest, longest, back)), count))


def draws(seed: int, symbols: int, shortest: int, longest: int, back: int) -> Iterator[Example]:
    """Streams without end; the same may come twice. After `back` letters each place is a mark once in three times."""
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
        places = [place for place, symbol in enumerate(stream) if symbol == MARK]
        yield Example("".join(stream), "".join(stream[place - back] for place in places))


def earliest(source: str) -> list[int]:
    """How many tokens must have been read before each token of the output is known."""
    return [place + 1 for place, symbol in enumerate(source) if symbol == MARK]


def delays(sources: Sequence[str], times: Sequence[Sequence[int]]) -> list[int]:
    """By how many tokens of the source each output token came later than it could; of outputs of the right length."""
    return [
        time - known
        for source, read in zip(sources, times, strict=True)
        if len(read) == source.count(MARK)
        for time, known in zip(read, earliest(source))
    ]
