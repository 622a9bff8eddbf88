"""Dialogues: the turns so far as one sequence of tokens, EOS after each turn; a reply as text of the same vocabulary.

A value is a list of turns, or a text whose turns end with `__eou__`. Turns stand end to end, so that no turn is padded
to the longest one: the encoder `hierarchical` takes them apart, and any other encoder reads the whole as one text.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import numpy as np

from seqloom.arrays import as_numpy
from seqloom.contracts import Codec
from seqloom.data.codecs.text import Text, Units
from seqloom.data.dialogues import END, join_turns, turns_of
from seqloom.data.special_tokens import EOS


class Dialogue(Codec):
    """Contexts <-> tokens (T,), EOS after each turn. The last `turns` are kept; 0: all.

    Of a turn with more than `longest` tokens only the first are read (0: any length), which `notes` counts. A target
    is its tokens, never cut; with `task.joint` replies share the vocabulary of turns. The other settings are those of
    the codec `text`.
    """

    divided = "turn"

    def __init__(
        self, *, turns: int = 0, longest: int = 0, units: Units = "bpe", size: int = 8000, lowercase: bool = False
    ):
        if turns < 0 or longest < 0:
            raise ValueError(f"turns = {turns} and longest = {longest} must be 0 or more")
        self.text = Text(units=units, size=size, lowercase=lowercase)
        self.turns, self.longest, self.units, self.size, self.lowercase = turns, longest, units, size, lowercase
        self._read = self._cut = 0  # contexts since the last notes

    @property
    def vocabulary(self) -> int:  # type: ignore[override]  # known once fitted
        """How many tokens there are, the special ones included."""
        return self.text.vocabulary

    def fit(self, values: Iterable[Any]) -> Self:
        self.text.fit(turn for value in values for turn in turns_of(value))  # also those that are not read
        return self

    def kept(self, value: Any) -> list[str]:
        """The turns that are read."""
        return turns_of(value)[-self.turns :]  # -0 keeps all

    def read(self, value: Any) -> np.ndarray:
        """The turns end to end, EOS after each.  (T,)"""
        encoded = self.text.encode_many(self.kept(value))
        self._read += 1
        if self.longest and any(len(turn) > self.longest for turn in encoded):
            self._cut += 1
            encoded = [turn[: self.longest] for turn in encoded]
        return np.concatenate([each for turn in encoded for each in (turn, [EOS])]).astype(np.int64)

    def encode(self, value: Any, source: Any = None) -> np.ndarray:
        """The tokens of a reply.  (U,)"""
        return np.concatenate(self.text.encode_many(self.kept(value))).astype(np.int64)

    def decode(self, values: Any, source: Any = None) -> str:
        """The text up to the first EOS."""
        return self.text.decode(values)

    def notes(self) -> list[str]:
        read, cut, self._read, self._cut = self._read, self._cut, 0, 0
        if not cut:
            return []
        limit = f"turns of more than {self.longest:,} tokens were cut (task.source.longest)"
        return [f"In {cut:,} of {read:,} context{'s' * (read != 1)} {limit}."]

    def pieces(self, values: Any) -> list[str]:
        """Each token for display; the end of a turn as in a file."""
        ids = as_numpy(values).tolist()
        return [END if index == EOS else piece for index, piece in zip(ids, self.text.pieces(ids))]

    def divisions(self, values: Any) -> list[str]:
        """The text of each turn of a context that was read."""
        tokens = as_numpy(values)
        ends = np.flatnonzero(tokens == EOS)
        return [self.text.decode(tokens[begin:end]) for begin, end in zip([0, *(ends[:-1] + 1)], ends)]

    def content(self, value: Any) -> list[str]:
        return self.kept(value)

    def cut(self, value: Any, longest: int) -> Any:
        """The last turns that are not too long together, and of the last one as much as fits."""
        found: list[str] = []
        for turn in reversed(turns_of(value)):
            longest -= len(turn)
            if longest < 0 and found:
                break
            found.insert(0, turn if longest >= 0 else turn[:longest])
        return found

    def normal(self, value: Any) -> str:
        """A reply as a perfect output would be."""
        return self.text.normal(" ".join(turns_of(value)))

    def line(self, value: Any) -> str:
        return super().line(value if isinstance(value, str) else join_turns(value))

    def save(self, folder: Path, name: str) -> None:
        self.text.save(folder, name)

    def load(self, folder: Path, name: str) -> Self:
        self.text.load(folder, name)
        return self

    def fingerprint(self) -> str:
        return f"{self.turns} {self.longest} {self.text.fingerprint()}"
