"""Tokens that were hidden: softmax(E norm(gelu(W h_t)) + b) at each position, E the table of embeddings.

Devlin, Chang, Lee & Toutanova 2019 (BERT). With `share_embeddings` E is the encoder's. Next-sentence
prediction is one more token, in the place of the first.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from seqloom.contracts import Head
from seqloom.nn.layers.embedding import embedding
from seqloom.nn.ops.linear import Projection
from seqloom.types import Memory, Output, Padded, State


class Masked(Head):
    """Works on any encoder that has one state per token, as wide as its embeddings."""

    per_token = True

    def __init__(self, *, vocabulary: int, memory_size: int, bos: int):
        super().__init__(memory_size=memory_size, bos=bos)
        self.hidden_size = memory_size
        self.transform, self.norm = nn.Linear(memory_size, memory_size), nn.LayerNorm(memory_size)
        self.embedding = embedding(vocabulary, memory_size)
        self.bias = nn.Parameter(torch.zeros(vocabulary))

    def transformed(self, states: Tensor) -> Tensor:
        """(..., D)"""
        found: Tensor = self.norm(functional.gelu(self.transform(states)))
        return found

    @property
    def project(self) -> Projection:
        return Projection(self.embedding.weight, self.bias)

    def forward(self, memory: Memory, inputs: Padded, state: State | None = None, attention: bool = False) -> Output:
        owner = memory.owner(len(inputs.lengths))
        return Output(self.transformed(memory.states)[owner], self.project, {})  # (rows, T, D)

    def answer(self, memory: Memory) -> Padded:
        scores: Tensor = self.project(self.transformed(memory.states))
        return Padded(scores.argmax(-1), memory.lengths)
