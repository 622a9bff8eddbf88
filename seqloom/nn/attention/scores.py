"""What attentions with a score function share: rows of one source are folded together, softmax, weighted mean."""

from abc import abstractmethod

import torch
from torch import Tensor

from seqloom.contracts import Attention
from seqloom.types import Memory, State


class ScoredAttention(Attention):
    """Weights = softmax(score(query, key)) over the real positions, context = weights . states.

    A subclass defines `score`, and `keys` if they are not the states themselves.
    """

    def __init__(self, *, query_size: int, memory_size: int):
        super().__init__()
        self.query_size, self.memory_size = query_size, memory_size
        self.output_size = memory_size

    def keys(self, states: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, K)"""
        return states

    @abstractmethod
    def score(self, query: Tensor, keys: Tensor) -> Tensor:
        """(B, Q, query_size), (B, T, K) -> (B, Q, T)"""

    def prepare(self, memory: Memory) -> Memory:
        return memory.with_extra(keys=self.keys(memory.states))

    def forward(
        self, query: Tensor, memory: Memory, state: State, weights: bool = False, lengths: Tensor | None = None
    ) -> tuple[Tensor, State, Tensor | None]:
        rows, length, _ = query.shape
        folded = query.reshape(memory.rows, -1, query.shape[-1])  # (B, n * Q, D), n rows per source
        scores = self.mask_scores(self.score(folded, memory.extra["keys"]), memory)
        weight = torch.softmax(scores, dim=-1)  # (B, n * Q, T)
        context = (weight @ memory.states).view(rows, length, -1)
        return context, state, weight.view(rows, 1, length, -1) if weights else None

    @staticmethod
    def mask_scores(scores: Tensor, memory: Memory) -> Tensor:
        """Scores with -inf at padding and where a query may not attend yet.  (B, n * Q, T)"""
        scores = scores.masked_fill(~memory.mask[:, None], float("-inf"))
        if "bias" in memory.extra:  # (B, 1, 1 or Q, T)
            scores = scores + memory.extra["bias"][:, 0].to(scores.dtype)
        return scores
