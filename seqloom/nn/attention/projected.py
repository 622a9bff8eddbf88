"""Dot-product attention of projected queries and keys: score(q, k) = f(W q) . f(U k), divided by sqrt(size) if scaled.

Lectures 001 (linear, scaled) and 004 (through a non-linearity, not scaled; also through several layers).
"""

from collections.abc import Iterable
from typing import Literal

import torch
from torch import Tensor, nn

from seqloom.nn.attention.scores import ScoredAttention

ACTIVATIONS = {"none": nn.Identity(), "sigmoid": nn.Sigmoid(), "tanh": nn.Tanh()}


class Projected(ScoredAttention):
    """Query and key are each projected to `size`, so that the two sides may differ in size.

    With several `layers` each side is a network f(W_n .. f(W_1 x)) of its own; without an activation it stays linear.
    """

    def __init__(
        self,
        *,
        query_size: int,
        memory_size: int,
        size: int = 256,
        layers: int = 1,
        activation: Literal["none", "sigmoid", "tanh"] = "none",
        scaled: bool = True,
    ):
        super().__init__(query_size=query_size, memory_size=memory_size)
        if layers < 1:
            raise ValueError(f"layers = {layers} must be 1 or more")
        self.query = nn.Linear(query_size, size, bias=False)
        self.key = nn.Linear(memory_size, size, bias=False)
        self.further_query_layers, self.further_key_layers = (
            nn.ModuleList(nn.Linear(size, size, bias=False) for _ in range(layers - 1)) for _ in range(2)
        )
        self.activation = ACTIVATIONS[activation]
        self.scale = size**-0.5 if scaled else 1.0

    def keys(self, states: Tensor) -> Tensor:
        return self.through((self.key, *self.further_key_layers), states)  # (B, T, size)

    def score(self, query: Tensor, keys: Tensor) -> Tensor:
        queries = self.through((self.query, *self.further_query_layers), query)  # (B, Q, size)
        return self.scale * torch.matmul(queries, keys.transpose(1, 2))

    def through(self, layers: Iterable[nn.Module], values: Tensor) -> Tensor:
        """The activation follows every layer, the last one too."""
        for layer in layers:
            values = self.activation(layer(values))
        return values
