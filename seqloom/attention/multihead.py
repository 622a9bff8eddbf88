"""Multi-head attention: several scaled dot products side by side.

Vaswani et al. 2017, section 3.2.2.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from seqloom.contracts import Attention
from seqloom.types import Memory, State


class MultiHead(Attention):
    """Attends a memory like every attention; Transformer layers also call `attend` on keys of their own."""

    def __init__(self, *, query_size: int, memory_size: int, heads: int = 4, dropout: float = 0.0):
        super().__init__()
        if query_size % heads:
            raise ValueError(f"heads = {heads} does not divide the size {query_size}")
        self.output_size = query_size
        self.heads, self.dropout = heads, dropout
        self.query = nn.Linear(query_size, query_size)
        self.key_value = nn.Linear(memory_size, 2 * query_size)
        self.output = nn.Linear(query_size, query_size)
        for projection in (self.query, self.key_value):
            nn.init.xavier_uniform_(projection.weight)
            nn.init.zeros_(projection.bias)
        nn.init.zeros_(self.output.bias)

    def prepare(self, memory: Memory) -> Memory:
        keys, values = self.keys_values(memory.states)
        return memory.with_extra(keys=keys, values=values)

    def keys_values(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """(B, T, D) -> twice (B, T, size)"""
        keys, values = self.key_value(states).chunk(2, dim=-1)
        return keys, values

    def forward(
        self, query: Tensor, memory: Memory, state: State, weights: bool = False
    ) -> tuple[Tensor, State, Tensor | None]:
        rows, length, _ = query.shape
        folded = query.reshape(memory.rows, -1, query.shape[-1])  # (B, n * Q, D): n rows a source
        allowed = memory.mask[:, None, None]  # (B, 1, 1, T)
        context, weight = self.attend(folded, memory.extra["keys"], memory.extra["values"], allowed, weights=weights)
        if weight is not None:  # (B, heads, n * Q, T) -> (rows, heads, Q, T)
            weight = weight.unflatten(2, (-1, length)).transpose(1, 2).reshape(rows, self.heads, length, -1)
        return context.view(rows, length, -1), state, weight

    def attend(
        self,
        query: Tensor,
        keys: Tensor,
        values: Tensor,
        allowed: Tensor | None,
        causal: bool = False,
        weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """(B, Q, size), (B, T, size), allowed broadcast to (B, heads, Q, T) -> (B, Q, size), (B, heads, Q, T)

        `causal` means that query i sees keys 0..i; it stands instead of a mask.
        """
        query, keys, values = (self.split(part) for part in (self.query(query), keys, values))
        weight = None
        if weights:
            if causal:
                allowed = torch.ones(query.shape[2], keys.shape[2], dtype=torch.bool, device=query.device).tril()
            scores = query @ keys.transpose(2, 3) * query.shape[-1] ** -0.5
            if allowed is not None:
                scores = scores.masked_fill(~allowed, float("-inf"))
            weight = torch.softmax(scores, dim=-1)
            context = weight @ values
        else:
            dropout = self.dropout if self.training else 0.0
            context = scaled_dot_product_attention(query, keys, values, allowed, dropout, is_causal=causal)
        return self.output(context.transpose(1, 2).flatten(2)), weight

    def split(self, tensor: Tensor) -> Tensor:
        """(B, T, size) -> (B, heads, T, size / heads)"""
        return tensor.unflatten(2, (self.heads, -1)).transpose(1, 2)
