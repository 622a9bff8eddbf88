"""A running text: a language model that reads line after line and keeps its state.

Truncated back-propagation through time: the text is cut into columns that are read side by side, one window at a time;
the state is passed from window to window, the gradient is not (Mikolov et al. 2010; Zaremba, Sutskever & Vinyals 2014).
EOS is a line break here: a text begins after one, and only its length ends it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from seqloom.contracts import Codec, Task
from seqloom.data import batching
from seqloom.data.special_tokens import EOS, UNK
from seqloom.errors import SeqloomError, shown
from seqloom.types import COUNTED, Batch, Padded

if TYPE_CHECKING:
    from seqloom.data.corpus import Corpus

PRIME = 7919  # shares no factor with a window, so that over the epochs windows begin everywhere
VALIDATION_COLUMNS = 16  # few, since each begins without a context


class RunningText(Task):
    """`window` is how many steps gradients go back. Without `carry` windows are independent, as Transformers need.

    With `answers_after` only what follows that token on a line counts in the loss, the line break included: "12+34=46".
    """

    running = True
    bos, eos = EOS, None

    def __init__(self, *, target: Codec, window: int = 64, carry: bool = True, answers_after: str = ""):
        if window < 2:
            raise ValueError(f"window = {window} must be 2 or more")
        self.target, self.window, self.carry, self.answers_after = target, window, carry, answers_after

    def plan(self, lengths: np.ndarray, tokens: int, seed: int, epoch: int, accumulate: int = 1) -> batching.Plan:
        total, columns = int(lengths[:, 1].sum()), tokens // self.window
        if not self.carry:
            return batching.windows_of_text(total, self.window, columns, (seed, epoch))
        # Windows begin elsewhere in each epoch, if the text is long enough to skip its first tokens.
        shift = epoch * PRIME % self.window if total > 4 * accumulate * self.window else 0
        return batching.columns_of_text(total, self.window, columns, accumulate, shift)

    def in_order(self, lengths: np.ndarray, tokens: int) -> batching.Plan:
        total, columns = int(lengths[:, 1].sum()), tokens // self.window
        if not self.carry:
            return batching.windows_of_text(total, self.window, columns)
        return batching.columns_of_text(total, self.window, min(columns, VALIDATION_COLUMNS))

    def collate(self, corpus: Corpus, rows: np.ndarray) -> Batch:
        """Windows of tokens to predict, each preceded by the token before it."""
        begins, ends = rows.T.tolist()
        windows = [self.read_window(corpus, begin, end) for begin, end in zip(begins, ends)]
        return Batch(
            source=None,
            inputs=Padded.stack([window[:-1] for window in windows]),
            targets=Padded.stack([window[1:] for window in windows]),
            examples=tuple(begins),
            extra={COUNTED: self.counted_windows(corpus, begins, ends)} if self.answers_after else {},
            carry=self.carry,
        ).to("cpu")

    @staticmethod
    def read_window(corpus: Corpus, begin: int, end: int) -> np.ndarray:
        """Tokens from the one before `begin`.  (1 + end - begin,)"""
        if begin:
            return corpus.stream(begin - 1, end)
        return np.append(EOS, corpus.stream(0, end))

    def counted_windows(self, corpus: Corpus, begins: list[int], ends: list[int]) -> np.ndarray:
        """Whether the targets of windows count; padding does not.  (B, window)"""
        found = np.zeros((len(begins), max(end - begin for begin, end in zip(begins, ends))), dtype=bool)
        for row, begin, end in zip(found, begins, ends):
            first = begin
            while first and EOS not in corpus.stream(first, begin):  # back into the line before
                first = max(first - self.window, 0)
            row[: end - begin] = self.counted(corpus.stream(first, end))[begin - first :]
        return found

    def counted(self, tokens: np.ndarray) -> np.ndarray:
        """Whether tokens of a text, from the beginning of a line, are part of an answer.  (N,) -> (N,)"""
        if not self.answers_after:
            return np.ones(len(tokens), dtype=bool)
        sign = self.target.encode(self.answers_after)
        if len(sign) != 1 or sign[0] == UNK:
            raise SeqloomError(f"task.answers_after = {self.answers_after!r}: expected one token of the vocabulary")
        places = np.arange(1, len(tokens) + 1)
        last_sign, last_break = (
            np.maximum.accumulate(np.append(0, np.where(tokens == each, places, 0)))[:-1] for each in (sign[0], EOS)
        )
        return last_sign > last_break

    def encode(self, value: str) -> np.ndarray:
        """Lines with EOS between; none after the last."""
        if not isinstance(value, str):
            raise SeqloomError(f"expected a text, not {shown(value)}")
        lines = [np.append(EOS, self.target.encode(line)) for line in value.split("\n")]
        return np.concat(lines)[1:]

    def decode(self, tokens: Any, source: None = None) -> str:
        lines: list[list[int]] = [[]]
        for token in map(int, tokens):
            if token == EOS:
                lines.append([])
            else:
                lines[-1].append(token)
        return "\n".join(map(self.target.decode, lines))
