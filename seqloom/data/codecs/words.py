"""Words with their spelling: a table of integers, one row per word, so that a model can read words it has never seen.

A row is the word's token, then a mark, the code of each letter, a second mark, and zeros. Letters have no vocabulary:
every character of Unicode has its own code.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from seqloom.arrays import as_numpy
from seqloom.contracts import Codec
from seqloom.data.codecs.text import Text

BEGIN, END = 1, 2  # marks around a word
FIRST = 3  # the code of U+0000


class Words(Codec):
    """Text of words, separated by white space, as a source: (T, 3 + letters).

    `size` is how many words get a token of their own. Of longer words than `letters` the middle is left out.
    """

    nested = "word"

    def __init__(self, *, size: int = 20_000, letters: int = 16, lowercase: bool = False):
        if letters < 2:
            raise ValueError(f"letters = {letters} must be 2 or more")
        self.text = Text(units="word", size=size, lowercase=lowercase)
        self.size, self.letters, self.lowercase = size, letters, lowercase

    @property
    def vocabulary(self) -> int:  # type: ignore[override]  # known once fitted
        return self.text.vocabulary

    def fit(self, values: Iterable[str]) -> Self:
        self.text.fit(values)
        return self

    def encode(self, value: str, source: Any = None) -> np.ndarray:
        return self.encode_many([value])[0].astype(np.int64)  # (T, 3 + letters)

    def encode_many(self, values: Sequence[str]) -> list[np.ndarray]:
        """The tables of many texts, int32. The case of letters stays, also with `lowercase`."""
        return [self._table(*each) for each in zip(self.text.encode_many(values), values)]

    def _table(self, tokens: np.ndarray, value: str) -> np.ndarray:
        table = np.zeros((len(tokens), 3 + self.letters), dtype=np.int32)
        table[:, 0] = tokens
        half = self.letters // 2
        for row, word in zip(table, value.split()):
            kept = word if len(word) <= self.letters else word[:half] + word[half - self.letters :]
            row[1 : 3 + len(kept)] = [BEGIN, *(FIRST + ord(letter) for letter in kept), END]
        return table

    def decode(self, values: Any, source: Any = None) -> str:
        return self.text.decode(as_numpy(values)[:, 0])

    def pieces(self, values: Any) -> list[str]:
        """Each word for display, as far as its letters are kept."""
        spelled = [[chr(code - FIRST) for code in row[1:] if code >= FIRST] for row in as_numpy(values).tolist()]
        return ["".join(letters) for letters in spelled]

    def elements(self, value: str) -> int | None:
        return self.text.elements(value)

    def normal(self, value: str) -> str:
        return self.text.normal(value)

    def save(self, folder: Path, name: str) -> None:
        self.text.save(folder, name)

    def load(self, folder: Path, name: str) -> Self:
        self.text.load(folder, name)
        return self

    def fingerprint(self) -> str:
        return f"{self.letters} {self.text.fingerprint()}"
