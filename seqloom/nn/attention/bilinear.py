"""Bilinear attention: score(q, k) = q . W k.

Luong, Pham & Manning 2015, eq. 8 ("general"); the lectures call it multiplicative.
"""

from torch import Tensor, nn

from seqloom.nn.attention.scores import ScoredAttention


class Bilinear(ScoredAttention):
    """One matrix between query and key, so the two may differ in size."""

    def __init__(self, *, query_size: int, memory_size: int):
        super().__init__(query_size=query_size, memory_size=memory_size)
        self.key = nn.Linear(memory_size, query_size, bias=False)

    def keys(self, states: Tensor) -> Tensor:
        return self.key(states)  # (B, T, query_size)

    def score(self, query: Tensor, keys: Tensor) -> Tensor:
        return query @ keys.transpose(1, 2)
