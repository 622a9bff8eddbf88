"""Dot-product attention: score(q, k) = q . k, or q . k / sqrt(d).

Luong, Pham & Manning 2015, eq. 8 ("dot"); the scaled form is Vaswani et al. 2017, eq. 1.
"""

from torch import Tensor

from seqloom.nn.attention.scores import ScoredAttention


class Dot(ScoredAttention):
    """Query and memory must have the same size d; `scaled` divides by sqrt(d)."""

    def __init__(self, *, query_size: int, memory_size: int, scaled: bool = False):
        super().__init__(query_size=query_size, memory_size=memory_size)
        if query_size != memory_size:
            raise ValueError(
                f"dot attention needs queries as wide as the memory, not {query_size} and {memory_size}: "
                'set equal sizes, or attention.type = "bilinear"'
            )
        self.scale = memory_size**-0.5 if scaled else 1.0

    def score(self, query: Tensor, keys: Tensor) -> Tensor:
        return (query * self.scale) @ keys.transpose(1, 2)
