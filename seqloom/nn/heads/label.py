"""A label for each source: softmax(W s), where s is pooled from all states of the encoder.

pooling="mean_max"    s = [mean of h_t; max of h_t]
                      Howard & Ruder 2018, section 3.3: concat pooling, without the last state, which few encoders have
pooling="attention"   s = sum of a_t h_t,    a = softmax(v . tanh(U h_t))
                      Lin et al. 2017, eq. 3 and 5, with one attention; `explain` shows it
"""

from typing import Literal

import torch
from torch import Tensor, nn

from seqloom.contracts import Head
from seqloom.nn.heads.outputs import projection_of_labels
from seqloom.nn.heads.word import rows_of_one_token
from seqloom.nn.ops.dropout import Dropout
from seqloom.nn.ops.mean import masked_mean
from seqloom.types import Memory, Output, Padded, State


class Label(Head):
    """Works on any encoder. `size` is that of the attention's hidden layer."""

    def __init__(
        self,
        *,
        vocabulary: int,
        memory_size: int,
        pooling: Literal["mean_max", "attention"] = "mean_max",
        size: int = 64,
        dropout: float = 0.0,
    ):
        super().__init__(memory_size=memory_size)
        self.hidden_size = 2 * memory_size if pooling == "mean_max" else memory_size
        self.dropout = Dropout(dropout)
        self.output = nn.Linear(self.hidden_size, vocabulary)
        if pooling == "attention":
            self.attention = nn.Sequential(nn.Linear(memory_size, size), nn.Tanh(), nn.Linear(size, 1, bias=False))
        self.pooling = pooling

    def forward(self, memory: Memory, inputs: Padded, state: State | None = None, attention: bool = False) -> Output:
        owner = memory.owner(rows_of_one_token(inputs, "label"))
        pooled, weights = self.pool(memory)
        maps = {"source": weights[owner, None, None, None]} if attention and weights is not None else {}
        return Output(self.dropout(pooled)[owner, None], projection_of_labels(self.output), {}, maps)

    def answer(self, memory: Memory) -> Padded:
        scores = projection_of_labels(self.output, known=True)(self.pool(memory)[0])  # (B, V)
        return Padded(scores.argmax(-1, keepdim=True), memory.lengths.new_ones(memory.rows))

    def pool(self, memory: Memory) -> tuple[Tensor, Tensor | None]:
        """The vector of each source, (B, hidden_size), and the attention to its states, (B, T)."""
        outside = ~memory.mask[:, :, None]
        if self.pooling == "attention":
            weights = self.attention(memory.states).masked_fill(outside, float("-inf")).softmax(1)  # (B, T, 1)
            return (weights * memory.states.masked_fill(outside, 0)).sum(1), weights[:, :, 0]
        largest = memory.states.masked_fill(outside, torch.finfo(memory.states.dtype).min).amax(1)
        return torch.cat([masked_mean(Padded(memory.states, memory.lengths)), largest], dim=-1), None
