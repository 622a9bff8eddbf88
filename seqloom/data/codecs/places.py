"""Places of the source, counted from 0: outputs that choose among the elements of their input.

A value is a list of integers, separated by spaces in a file: "0 3 2 0". Place p is the token p + 4, after the special
tokens: there are as many places as the source has elements.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import numpy as np

from seqloom.arrays import as_numpy
from seqloom.contracts import Codec
from seqloom.data.special_tokens import SPECIAL, as_ids, before_eos
from seqloom.errors import UnreadableError, shown

FIRST = len(SPECIAL)  # the token of place 0


class Places(Codec):
    """Lists of places <-> tokens. Nothing is learned."""

    vocabulary = FIRST
    chooses = "places"
    source: Codec | None = None  # of the elements to choose from, where it is known
    rule, least = "a choice", 1  # what an output is called, and how many elements it needs at least

    def fit(self, values: Iterable[Any]) -> Self:
        return self

    def encode(self, value: Any, source: Any = None) -> np.ndarray:
        if source is not None and self.source is not None:
            self.check(value, source, len(self.source.read(source)))
        return np.array(self.normal(value), dtype=np.int64) + FIRST  # (T,)

    def check(self, value: Any, source: Any, count: int) -> None:
        """Refuse places that the source does not have, and a source of too few elements."""
        if count < self.least:
            found = f"the source {shown(source)} has {count}"
            raise UnreadableError(f"{self.rule} needs {self.least} elements or more, and {found}")
        if (places := self.normal(value)) and max(places) >= count:
            elements = f"{count} element{'s' * (count != 1)}"
            raise UnreadableError(
                f"place {max(places)} is beyond a source of {elements}; expected 0 to {count - 1}, counted from 0"
            )

    def decode(self, values: Any, source: Any = None) -> list[int]:
        """The places up to the first EOS, without other special tokens."""
        return [token - FIRST for token in before_eos(values) if token >= FIRST]

    def content(self, value: Any) -> str:
        return self.line(value)

    def normal(self, value: Any) -> list[int]:
        """The value as a list."""
        try:
            items = value.split() if isinstance(value, str) else value
            items = items if isinstance(items, (list, tuple)) else as_numpy(items).tolist()
            places = [int(item) for item in items]
            if all(place >= 0 and place == float(item) for place, item in zip(places, items)):
                return places
        except (AttributeError, TypeError, ValueError, OverflowError):
            pass
        raise UnreadableError(f'{shown(value)} is not a list of places; expected integers from 0 on, such as "0 3 2 0"')

    def line(self, value: Any) -> str:
        return " ".join(map(str, self.normal(value)))

    def pieces(self, values: Any) -> list[str]:
        """Each token for display."""
        return [SPECIAL[token] if token < FIRST else str(token - FIRST) for token in as_ids(values)]

    def save(self, folder: Path, name: str) -> None:
        """Nothing was learned."""

    def load(self, folder: Path, name: str) -> Self:
        return self
