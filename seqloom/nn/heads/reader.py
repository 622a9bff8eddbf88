"""Attention-sum reader: the answer is a word of the document, scored by the attention to all its occurrences.

Kadlec, Schmid, Bajgar & Kleindienst 2016, eq. 1 to 4: with f_i the states of the words, g that of the question,
    s_i = softmax_i(f_i . g)      P(w) = sum of s_i over all positions i of w
Only words in the target's vocabulary are candidates: probabilities are renormalised over these.
"""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from seqloom.contracts import Head
from seqloom.nn.heads.word import rows_of_one_token
from seqloom.types import Memory, Output, Padded, State


class Reader(Head):
    """`pooling = "max"` takes the largest attention to any occurrence, not the sum.

    Words that are not in the document get the smallest positive probability, not 0, so that the loss stays finite.
    """

    def __init__(
        self,
        *,
        vocabulary: int,
        memory_size: int,
        unk: int,
        written: Sequence[int],
        pooling: Literal["sum", "max"] = "sum",
    ):
        super().__init__(memory_size=memory_size)
        self.vocabulary, self.unk, self.pooling = vocabulary, unk, pooling
        self.written: Tensor  # from tokens of the source to those of the target
        self.register_buffer("written", torch.tensor(list(written)), persistent=False)

    def forward(self, memory: Memory, inputs: Padded, state: State | None = None, attention: bool = False) -> Output:
        owner = memory.owner(rows_of_one_token(inputs, "reader"))
        scores, weights = self.read(memory)
        maps = {"source": weights[owner, None, None, None]} if attention else {}  # (rows, 1, 1, 1, N)
        hidden = memory.final["summary"][owner, None]
        return Output(hidden, lambda hidden: hidden, {}, maps, ready=scores[owner, None])

    def answer(self, memory: Memory) -> Padded:
        return Padded(self.read(memory)[0].argmax(-1, keepdim=True), memory.lengths.new_ones(memory.rows))

    def read(self, memory: Memory) -> tuple[Tensor, Tensor]:
        """Log-probabilities of tokens (B, V), and the attention to each word (B, N)."""
        if "words" not in memory.parts:
            raise ValueError('decoder.type = "reader" needs encoder.type = "reader"')
        words, tokens = memory.parts["words"], self.written[memory.parts["tokens"].states]  # (B, N, D), (B, N)
        candidates = words.mask & (tokens > self.unk)
        energies = torch.einsum("bnd,bd->bn", words.states, memory.final["summary"])
        energies = energies.masked_fill(~candidates, torch.finfo(energies.dtype).min)
        weights = energies.softmax(-1) * candidates
        shares = weights.new_zeros(len(weights), self.vocabulary)
        kind = "amax" if self.pooling == "max" else "sum"
        shares = shares.scatter_reduce(1, tokens, weights, kind)  # the initial 0 is below every weight
        return shares.clamp(min=torch.finfo(shares.dtype).tiny).log(), weights
