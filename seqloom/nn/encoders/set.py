"""Set encoder, independent of the order of elements: read, process, write. Vinyals, Bengio & Kudlur 2016, section 4.1.

Read: each element is embedded by itself as m_j. Process: an LSTM without inputs attends all of them P times,
    q_t = LSTM(q*_{t-1})      r_t = sum_j a_j m_j, a = softmax(m_j . q_t)      q*_t = [q_t; r_t]
so that q*_P is a summary of the set. Write: a decoder starts from it.
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
    """`steps` is P; with 0 the summary is zeros."""

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
        return Memory(states, source.lengths, {"summary": self.summarise(Memory(states, source.lengths))})

    def summarise(self, memory: Memory) -> Tensor:
        """The summary after P steps of attention.  (B, size)"""
        if not self.steps:
            return memory.states.new_zeros(memory.rows, self.output_size)
        prepared = self.attention.prepare(memory)
        combined, state = memory.states.new_zeros(memory.rows, 2 * self.output_size), self.process.start(memory.rows)
        for _ in range(self.steps):
            query, state = self.process(self.process.project(combined), state)
            context, _, _ = self.attention(query[:, None], prepared, {})
            combined = torch.cat([query, context[:, 0]], dim=-1)  # q*
        return self.summary(combined)
