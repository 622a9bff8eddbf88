"""Text whose words may be copied: words outside the vocabulary are identified by their position in the source.

A word of the source that is not in the vocabulary is the token vocabulary + j, where j is its first position in the
source; so is such a word of a target, if the source has it. All other unknown words are UNK.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Self

import numpy as np

from seqloom.contracts import Codec
from seqloom.data.codecs.text import Text
from seqloom.data.special_tokens import BOS, PAD, UNK, UNKNOWN, as_ids, before_eos


class Copying(Codec):
    """Text of words or characters <-> tokens. Copies are spelled as in their source."""

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
        tokens = self.codec.encode(value)
        if source is None or UNK not in tokens:
            return tokens
        first: dict[str, int] = {}
        for place, word in enumerate(self.words(source)):
            first.setdefault(word, place)
        for place, word in enumerate(self.words(value)):
            if tokens[place] == UNK and word in first:
                tokens[place] = self.vocabulary + first[word]
        return tokens  # (T,)

    def decode(self, values: Any, source: str | None = None) -> str:
        """The text up to the first EOS. Without a source, copies are unknown."""
        tokens = [token for token in before_eos(values) if token not in (PAD, BOS)]
        return (" " if self.units == "word" else "").join(self.spell(tokens, source, self.codec.decode))

    def pieces(self, values: Any, source: str | None = None) -> list[str]:
        """Each token for display."""
        return self.spell(as_ids(values), source, lambda tokens: self.codec.pieces(tokens)[0])

    def spell(self, tokens: list[int], source: str | None, decode: Callable[[list[int]], str]) -> list[str]:
        """The text of each token, that of a copy from the source."""
        known, copies = self.vocabulary, dict(enumerate([] if source is None else self.raw_words(source)))
        return [decode([token]) if token < known else copies.get(token - known, UNKNOWN) for token in tokens]

    def words(self, value: str) -> list[str]:
        """The words or characters of a text, normalised as in the vocabulary."""
        normal = self.codec.normal(value)
        return normal.split() if self.units == "word" else list(normal)

    def raw_words(self, value: str) -> list[str]:
        """The same words or characters as they were written."""
        if self.units == "word":
            return value.split()
        if not self.lowercase:
            return list(value)
        # In lower case a letter may become several characters: the first of them stands for all.
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
