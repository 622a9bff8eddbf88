"""A set, read in no order: read, process, write. Vinyals, Bengio & Kudlur 2016, section 4.1.

Read: each element becomes a memory m_j by itself. Process: a network without inputs looks at all of them P times,
    q_t = LSTM(q*_{t-1})      r_t = sum_j a_j m_j, a = softmax(m_j . q_t)      q*_t = [q_t; r_t]
so that q*_P is a summary which does not depend on their order. What writes is a decoder that begins with it.
"""

import torch
from torch import Tensor, nn

from seqloom.contracts import Encoder
from seqloom.nn.attention.dot import Dot
from seqloom.nn.cells.lstm import LSTM
from seqloom.nn.layers.embedding import input_layer
from seqloom.nn.ops.dropout import Dropout
from seqloom.types import Memory, Padded


class Set(Encoder):
    """`steps` is P; with 0 nothing is known of the set as a whole. An element is read by a layer of its own."""

    def __init__(
        self,
        *,
        vocabulary: int | None = None,
        features: int | None = None,
        embedding_size: int = 256,
        size: int = 256,
        steps: int = 5,
        dropout: float = 0.0,
    ):
        super().__init__()
        if steps < 0:
            raise ValueError(f"steps = {steps} must be 0 or more")
        self.steps, self.output_size = steps, size
        self.embedding = input_layer(vocabulary, features, embedding_size)
        self.element = nn.Sequential(nn.ReLU(), nn.Linear(embedding_size, size))
        self.dropout = Dropout(dropout)
        if steps:
            self.process = LSTM(input_size=2 * size, size=size)
            self.attention = Dot(query_size=size, memory_size=size)
            self.summary = nn.Linear(2 * size, size)

    def forward(self, source: Padded, attention: bool = False) -> Memory:
        states = self.dropout(self.element(self.embedding(source.values)))  # (B, T, size)
        return Memory(states, source.lengths, {"summary": self.processed(Memory(states, source.lengths))})

    def processed(self, memory: Memory) -> Tensor:
        """(B, size)"""
        if not self.steps:
            return memory.states.new_zeros(memory.rows, self.output_size)
        prepared = self.attention.prepare(memory)
        query, state = memory.states.new_zeros(memory.rows, 2 * self.output_size), self.process.start(memory.rows)
        for _ in range(self.steps):
            asked, state = self.process(self.process.project(query), state)
            found, _, _ = self.attention(asked[:, None], prepared, {})
            query = torch.cat([asked, found[:, 0]], dim=-1)
        return self.summary(query)
