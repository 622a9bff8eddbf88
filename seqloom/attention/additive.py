"""Additive attention: score(q, k) = v . tanh(W q + U k).

Bahdanau, Cho & Bengio 2015, eq. 6; the same function as the lectures' "linear" form v . tanh(W [k; q]).
"""

import torch
from torch import Tensor, nn

from seqloom.attention.scores import ScoredAttention


class Additive(ScoredAttention):
    """A network with one hidden layer scores each pair of query and key."""

    def __init__(self, *, query_size: int, memory_size: int, size: int = 256):
        super().__init__(query_size=query_size, memory_size=memory_size)
        self.query = nn.Linear(query_size, size, bias=False)
        self.key = nn.Linear(memory_size, size)
        self.energy = nn.Linear(size, 1, bias=False)

    def keys(self, states: Tensor) -> Tensor:
        return self.key(states)  # (B, T, size)

    def score(self, query: Tensor, keys: Tensor) -> Tensor:
        hidden = torch.tanh(self.query(query)[:, :, None] + keys[:, None])  # (B, Q, T, size)
        return self.energy(hidden).squeeze(-1)  # (B, Q, T)
