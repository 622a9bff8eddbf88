"""Places of the source, counted from 0: outputs that choose among the elements of their input.

A value is a list of whole numbers; in a file spaces stand between them: "0 3 2 0". As tokens they follow the four that
every vocabulary begins with, so that there are as many as the source has elements, whatever its length.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import numpy as np

from seqloom.arrays import as_numpy
from seqloom.contracts import Codec
from seqloom.data.special_tokens import EOS, SPECIAL
from seqloom.errors import UnreadableError, shown

FIRST = len(SPECIAL)  # the token of place 0


class Places(Codec):
    """Lists of places <-> tokens. There is nothing to learn."""

    vocabulary = FIRST
    chooses = "places"
    source: Codec | None = None  # of the elements that are chosen from, where it is known
    rule, least = "a choice", 1  # what outputs are called, and elements that a source must have

    def fit(self, values: Iterable[Any]) -> Self:
        return self

    def encode(self, value: Any, source: Any = None) -> np.ndarray:
        if source is not None and self.source is not None:
            self.check(value, source, len(self.source.read(source)))
        return np.array(self.normal(value), dtype=np.int64) + FIRST  # (T,)

    def check(self, value: Any, source: Any, count: int) -> None:
        """Refuse places that are not there, and a source of too few elements."""
        if count < self.least:
            found = f"the source {shown(source)} has {count}"
            raise UnreadableError(f"{self.rule} needs {self.least} elements or more, and {found}")
        if (places := self.normal(value)) and max(places) >= count:
            elements = f"{count} element{'s' * (count != 1)}"
            raise UnreadableError(
                f"place {max(places)} is beyond a source of {elements}; expected 0 to {count - 1}, counted from 0"
            )

    def decode(self, values: Any, source: Any = None) -> list[int]:
        """The places up to the first EOS; other tokens that are none are left out."""
        symbols = as_list(values)
        end = symbols.index(EOS) if EOS in symbols else len(symbols)
        return [symbol - FIRST for symbol in symbols[:end] if symbol >= FIRST]

    def content(self, value: Any) -> str:
        return self.line(value)

    def normal(self, value: Any) -> list[int]:
        """The value as a list."""
        try:
            items = value.split() if isinstance(value, str) else as_list(value)
            places = [int(item) for item in items]
            if all(place >= 0 and place == float(item) for place, item in zip(places, items)):
                return places
        except (AttributeError, TypeError, ValueError, OverflowError):
            pass
        raise UnreadableError(
            f'the places {shown(value)} are none; expected whole numbers from 0 on, such as "0 3 2 0"'
        )

    def line(self, value: Any) -> str:
        return " ".join(map(str, self.normal(value)))

    def pieces(self, values: Any) -> list[str]:
        """What each token shows as."""
        symbols = as_list(values)
        return [SPECIAL[symbol] if symbol < FIRST else str(symbol - FIRST) for symbol in symbols]

    def save(self, folder: Path, name: str) -> None:
        """Nothing was learned."""

    def load(self, folder: Path, name: str) -> Self:
        return self


def as_list(values: Any) -> list[Any]:
    """A list, or an array of any kind, as a list."""
    return list(values) if isinstance(values, (list, tuple)) else as_numpy(values).tolist()
