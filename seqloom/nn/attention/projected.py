"""Dot-product attention of projected queries and keys: score(q, k) = f(W q) . f(U k), divided by sqrt(size) if scaled.

Lectures 001 (linear, scaled) and 004 (through a non-linearity, not scaled).
"""

from typing import Literal

import torch
from torch import Tensor, nn

from seqloom.nn.attention.scores import ScoredAttention

ACTIVATIONS = {"none": nn.Identity(), "sigmoid": nn.Sigmoid(), "tanh": nn.Tanh()}


class Projected(ScoredAttention):
    """Query and key are each projected to `size`, so that the two sides may differ in size."""

    def __init__(
        self,
        *,
        query_size: int,
        memory_size: int,
        size: int = 256,
        activation: Literal["none", "sigmoid", "tanh"] = "none",
        scaled: bool = True,
    ):
        super().__init__(query_size=query_size, memory_size=memory_size)
        self.query = nn.Linear(query_size, size, bias=False)
        self.key = nn.Linear(memory_size, size, bias=False)
        self.activation = ACTIVATIONS[activation]
        self.scale = size**-0.5 if scaled else 1.0

    def keys(self, states: Tensor) -> Tensor:
        return self.activation(self.key(states))  # (B, T, size)

    def score(self, query: Tensor, keys: Tensor) -> Tensor:
        return self.scale * torch.matmul(self.activation(self.query(query)), keys.transpose(1, 2))
