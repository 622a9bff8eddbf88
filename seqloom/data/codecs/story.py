"""Stories with a question as their last sentence: a table of tokens, one row per sentence.

A value is a text whose sentences end with a full stop, a question mark or an exclamation mark ("Mary moved to the
bathroom. John went to the hallway. Where is Mary?"), or a list of sentences. Words are separated by spaces, in lower
case, without marks at their end. An answer is a word ("hallway", or "milk,football").
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import numpy as np

from seqloom.arrays import as_numpy
from seqloom.contracts import Codec
from seqloom.data.special_tokens import PAD, SPECIAL, UNK, UNKNOWN, before_eos
from seqloom.errors import SeqloomError, UnreadableError, shown
from seqloom.storage.files import LARGE, read_json, replace_file, saving, to_json

MARKS = ".,;:?!"
WIDEST = 10_000  # words of a sentence


class Story(Codec):
    """Stories <-> tokens (sentences, width). The last `sentences` before the question are kept.

    `width` is how many words a sentence may have; 0: as many as the longest in training. Longer ones are refused.
    As a target, a text is its words, (T,); with `task.joint` they share the vocabulary of stories.
    """

    nested = "sentence"

    def __init__(self, *, sentences: int = 50, width: int = 0):
        if sentences < 1 or width < 0:
            raise ValueError(f"sentences = {sentences} must be 1 or more, and width = {width} 0 or more")
        self.sentences, self.width = sentences, width
        self._widest = 0
        self._words: list[str] = []  # after the special tokens
        self._tokens: dict[str, int] = {}

    @property
    def vocabulary(self) -> int:  # type: ignore[override]  # known once fitted
        """How many tokens there are, the special ones included."""
        return len(SPECIAL) + len(self._fitted()._words)

    def fit(self, values: Iterable[Any]) -> Self:
        counts: Counter[str] = Counter()
        widest = 0
        for value in values:
            for words in sentences_of(value):
                counts.update(words)
                widest = max(widest, len(words))
        if not counts:
            raise SeqloomError("stories were given nothing to learn from; expected at least one sentence")
        return self._adopt(sorted(counts, key=lambda word: (-counts[word], word)), self.width or widest)

    def read(self, value: Any) -> np.ndarray:
        """One row per sentence, the question last.  (S, width)"""
        known, rows = self._fitted()._tokens, sentences_of(value)[-self.sentences - 1 :]
        table = np.full((len(rows), self._widest), PAD, dtype=np.int64)
        for row, words in zip(table, rows):
            if len(words) > self._widest:
                raise UnreadableError(
                    f"the sentence {shown(' '.join(words))} has {len(words)} words; this model reads up to "
                    f"{self._widest}: split it, or train with task.source.width = {len(words)}"
                )
            row[: len(words)] = [known.get(word, UNK) for word in words]
        return table

    def encode(self, value: Any, source: Any = None) -> np.ndarray:
        known = self._fitted()._tokens
        return np.array([known.get(word, UNK) for words in sentences_of(value) for word in words], dtype=np.int64)

    def decode(self, values: Any, source: Any = None) -> str:
        """The words up to the first EOS."""
        tokens = before_eos(as_numpy(values).reshape(-1))
        return " ".join(self._word(token) for token in tokens if token == UNK or token >= len(SPECIAL))

    def pieces(self, values: Any) -> list[str]:
        """Each sentence of a story, or each word of a target, for display."""
        array = as_numpy(values)
        if array.ndim > 1:
            return [self.decode(row) for row in array]
        return [SPECIAL[each] if each < len(SPECIAL) else self._word(each) for each in array.tolist()]

    def content(self, value: Any) -> str:
        sentences_of(value)
        return self.line(value)

    def elements(self, value: Any) -> int:
        """How many words a target has."""
        return len(self.normal(value).split())

    def normal(self, value: Any) -> str:
        """A target as a perfect output would be."""
        return " ".join(word for words in sentences_of(value) for word in words)

    def line(self, value: Any) -> str:
        return " ".join((value if isinstance(value, str) else " ".join(value)).split())

    def save(self, folder: Path, name: str) -> None:
        path = self._path(folder, name)
        with saving(path):
            replace_file(path, to_json({"width": self._fitted()._widest, "words": self._words}))

    def load(self, folder: Path, name: str) -> Self:
        path = self._path(folder, name)
        learned = read_json(path, LARGE, "expected the words of stories")
        words, width = learned.get("words"), learned.get("width")
        strings = isinstance(words, list) and bool(words) and all(isinstance(word, str) for word in words)
        if words is None or not strings or type(width) is not int or not 1 <= width <= WIDEST:
            raise SeqloomError(f'{path} has no words of stories; expected {{"width": 6, "words": [...]}}')
        return self._adopt(words, width)

    def _adopt(self, words: list[str], width: int) -> Self:
        self._words, self._widest = words, width
        self._tokens = {word: len(SPECIAL) + place for place, word in enumerate(words)}
        return self

    def _fitted(self) -> Self:
        if not self._words:
            raise SeqloomError("stories have no words yet; fit them or load them first")
        return self

    def _word(self, token: int) -> str:
        return UNKNOWN if token == UNK else self._words[token - len(SPECIAL)]

    @staticmethod
    def _path(folder: Path, name: str) -> Path:
        return Path(folder) / f"{name}.story.json"


def sentences_of(value: Any) -> list[list[str]]:
    """The words of each sentence that has any."""
    items = re.split(r"(?<=[.?!])\s+", value) if isinstance(value, str) else value
    if not isinstance(items, (list, tuple)) or not all(isinstance(item, str) for item in items):
        raise UnreadableError(f"{shown(value)} is not a story; expected a text, or a list of sentences")
    found = [[word for each in item.lower().split() if (word := each.rstrip(MARKS))] for item in items]
    found = [words for words in found if words]
    if not found:
        raise UnreadableError(f"the story {shown(value)} has no word; expected sentences, a question last")
    return found
