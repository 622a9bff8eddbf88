"""Text whose words may be copied: those that a vocabulary lacks are told apart by where they stand in the source.

A word of the source that the vocabulary lacks is the token vocabulary + j, where j is the first place of the source at
which it stands; so is such a word of a target, if the source has it. All other unknown words are one token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Self

import numpy as np

from seqloom.contracts import Codec
from seqloom.data.codecs.text import UNKNOWN, Text
from seqloom.data.special_tokens import BOS, EOS, PAD, UNK


class Copying(Codec):
    """Text of words or characters <-> tokens. Copies are written as their source spells them."""

    chooses = "copies"

    def __init__(self, *, codec: Codec):
        if not isinstance(codec, Text) or codec.units not in ("word", "char"):
            found = f'units = "{codec.units}"' if isinstance(codec, Text) else f'"{type(codec).__name__.lower()}"'
            raise ValueError(f'{found} has no unknown words to copy; expected text of units "word" or "char"')
        self.codec = codec
        self.units, self.size, self.lowercase = codec.units, codec.size, codec.lowercase

    @property
    def vocabulary(self) -> int:  # type: ignore[override]  # known once fitted
        return self.codec.vocabulary

    def fit(self, values: Iterable[str]) -> Self:
        self.codec.fit(values)
        return self

    def read(self, value: str) -> np.ndarray:
        return self.encode(value, value)

    def encode(self, value: str, source: str | None = None) -> np.ndarray:
        symbols = self.codec.encode(value)
        if source is None or UNK not in symbols:
            return symbols
        first: dict[str, int] = {}
        for place, word in enumerate(self.words(source)):
            first.setdefault(word, place)
        for place, word in enumerate(self.words(value)):
            if symbols[place] == UNK and word in first:
                symbols[place] = self.vocabulary + first[word]
        return symbols  # (T,)

    def decode(self, values: Any, source: str | None = None) -> str:
        """The text up to the first EOS; what was copied from a source that is not given is unknown."""
        symbols = [*map(int, values)]
        end = symbols.index(EOS) if EOS in symbols else len(symbols)
        written = [symbol for symbol in symbols[:end] if symbol not in (PAD, BOS)]
        return (" " if self.units == "word" else "").join(self.spelled(written, source, self.codec.decode))

    def pieces(self, values: Any, source: str | None = None) -> list[str]:
        """What each token shows as."""
        return self.spelled([*map(int, values)], source, lambda symbols: self.codec.pieces(symbols)[0])

    def spelled(self, symbols: list[int], source: str | None, spell: Callable[[list[int]], str]) -> list[str]:
        """Each token by itself."""
        known, copies = self.vocabulary, dict(enumerate([] if source is None else self.raw(source)))
        return [spell([each]) if each < known else copies.get(each - known, UNKNOWN) for each in symbols]

    def words(self, value: str) -> list[str]:
        """What stands at each place, as the codec knows it."""
        normal = self.codec.normal(value)
        return normal.split() if self.units == "word" else list(normal)

    def raw(self, value: str) -> list[str]:
        """What stands at each place, as it was written."""
        if self.units == "word":
            return value.split()
        if not self.lowercase:
            return list(value)
        # A small letter may be more than one character: the first of them stands for all.
        return [piece for letter in value for piece in (letter, *[""] * (len(letter.lower()) - 1))]

    def normal(self, value: str) -> str:
        return self.codec.normal(value)

    def content(self, value: str) -> Any:
        return self.codec.content(value)

    def line(self, value: str) -> str:
        return self.codec.line(value)

    def spellings(self, value: str) -> list[list[int]]:
        return self.codec.spellings(value)

    def fingerprint(self) -> str:
        return self.codec.fingerprint()

    def save(self, folder: Path, name: str) -> None:
        self.codec.save(folder, name)

    def load(self, folder: Path, name: str) -> Self:
        self.codec.load(folder, name)
        return self
