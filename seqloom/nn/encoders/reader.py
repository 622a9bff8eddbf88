"""Bidirectional encoders of document and question. Kadlec, Schmid, Bajgar & Kleindienst 2016, section 4.

f_i are the states of the words of the document, forward and backward concatenated; g is the last forward and the
last backward state of the question.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from seqloom.contracts import Cell, Encoder, Task
from seqloom.nn.cells.gru import GRU
from seqloom.nn.encoders.recurrent import run_layer
from seqloom.nn.ops.dropout import Dropout
from seqloom.types import Memory, Padded


class Reader(Encoder):
    """Reads stories (B, T, W), the question last. The summary is g; the state of a sentence is that of its last word.

    Parts of the memory: "words", all f_i of the document, and "tokens", the words themselves.
    """

    modality = ()

    def __init__(
        self,
        *,
        vocabulary: int,
        pad: int,
        embedding_size: int = 128,
        size: int = 128,
        cell: Callable[..., Cell] = GRU,
        dropout: float = 0.0,
    ):
        super().__init__()
        self.pad, self.output_size = pad, 2 * size
        self.embedding = nn.Embedding(vocabulary, embedding_size)
        self.dropout = Dropout(dropout)
        self.forwards, self.backwards, self.asking_forwards, self.asking_backwards = (
            cell(input_size=embedding_size, size=size) for _ in range(4)
        )

    def suit(self, task: Task) -> None:
        if task.source is None or task.source.nested != "sentence":
            raise ValueError('reads stories: set task.source.type = "story"')

    def forward(self, source: Padded, attention: bool = False) -> Memory:
        rows, width = torch.arange(len(source.lengths), device=source.lengths.device), source.values.shape[1]
        last = source.lengths - 1
        real = (source.values != self.pad) & source.mask[:, :, None]  # (B, T, W)
        question = compact(source.values[rows, last], real[rows, last])
        counts = real.sum(-1).index_put((rows, last), torch.zeros_like(last))  # (B, T): words of the document
        real = real & (torch.arange(width, device=last.device) < last[:, None])[:, :, None]
        words = compact(source.values.flatten(1), real.flatten(1))
        states = self.states(words, self.forwards, self.backwards)[0]  # (B, N, 2 * size)
        summary = self.states(question, self.asking_forwards, self.asking_backwards)[1]  # (B, 2 * size)
        ends = (counts.cumsum(1) - 1).clamp(min=0)  # (B, T)
        sentences = states.gather(1, ends[:, :, None].expand(-1, -1, self.output_size))
        sentences = sentences.index_put((rows, last), summary)
        parts = {"words": Memory(states, words.lengths), "tokens": Memory(words.values, words.lengths)}
        return Memory(sentences, source.lengths, {"summary": summary}, parts=parts)

    def states(self, words: Padded, forwards: Cell, backwards: Cell) -> tuple[Tensor, Tensor]:
        """The states of all words, (B, N, 2 * size), and the final state, (B, 2 * size)."""
        inputs = Padded(self.dropout(self.embedding(words.values)), words.lengths)
        states, final = run_layer(inputs, forwards, forwards.start(len(words.lengths)), backwards)
        return self.dropout(states), final["hidden"]


def compact(tokens: Tensor, real: Tensor) -> Padded:
    """The real tokens of each row without gaps, padded at the end; N is at least 1.  (B, M) -> (B, N)"""
    order = (~real).long().argsort(dim=1, stable=True)
    lengths = real.sum(1)
    return Padded(tokens.gather(1, order)[:, : max(int(lengths.max()), 1)], lengths)
