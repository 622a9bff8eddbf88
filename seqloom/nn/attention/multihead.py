"""Multi-head attention: several scaled dot-product attentions side by side.

Vaswani et al. 2017, section 3.2.2.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from seqloom.contracts import Attention
from seqloom.nn.ops.dropout import Dropout
from seqloom.nn.ops.linear import Linear, linear_of_several
from seqloom.nn.ops.packing import Packing
from seqloom.types import Memory, State


class MultiHead(Attention):
    """Attention to a memory; Transformer layers also call `attend` with keys of their own."""

    def __init__(self, *, query_size: int, memory_size: int, heads: int = 4, dropout: float = 0.0):
        super().__init__()
        if query_size % heads:
            raise ValueError(f"heads = {heads} does not divide the size {query_size}: choose a number that does")
        self.output_size = query_size
        self.heads = heads
        self.query = Linear(query_size, query_size)
        self.key_value = Linear(memory_size, 2 * query_size)
        self.output = Linear(query_size, query_size)
        self.dropout = Dropout(dropout)
        for projection in (self.query, self.key_value):
            nn.init.xavier_uniform_(projection.weight)
            nn.init.zeros_(projection.bias)
        nn.init.zeros_(self.output.bias)

    def prepare(self, memory: Memory) -> Memory:
        packing = Packing(memory.mask)
        return memory.with_extra(**self.entries(packing.pack(memory.states), packing))

    def entries(self, states: Tensor, packing: Packing) -> State:
        """What `attend_memory` needs in memory.extra, from packed states.  (N, D)"""
        keys, values = self.keys_values(states, packing)
        return {"keys": keys, "values": values, **({} if packing.full else {"bias": mask_bias(packing.mask)})}

    def queries(self, states: Tensor, packing: Packing) -> Tensor:
        """(N, D) -> (B, heads, T, d)"""
        return packing.unpack_heads(self.query(states), self.heads)[0]

    def keys_values(self, states: Tensor, packing: Packing) -> Tensor:
        """(N, D) -> (2, B, heads, T, d)"""
        return packing.unpack_heads(self.key_value(states), self.heads, 2)

    def queries_keys_values(self, states: Tensor, packing: Packing) -> Tensor:
        """For self-attention, in one product.  (N, D) -> (3, B, heads, T, d)"""
        return packing.unpack_heads(linear_of_several(states, (self.query, self.key_value)), self.heads, 3)

    def forward(
        self, query: Tensor, memory: Memory, state: State, weights: bool = False, lengths: Tensor | None = None
    ) -> tuple[Tensor, State, Tensor | None]:
        packing = Packing.unpadded(query.shape[0], query.shape[1], query.device)
        context, weight = self.attend_memory(query.flatten(0, 1), packing, memory, weights)
        return context.view(*query.shape[:2], -1), state, weight

    def attend_memory(
        self, query: Tensor, packing: Packing, memory: Memory, weights: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """Attention to a prepared memory, n rows per source.  (N, D) -> (N, D), (rows, heads, Q, T)"""
        queries, extra = fold_rows(self.queries(query, packing), memory.rows), memory.extra
        context, weight = self.attend(queries, extra["keys"], extra["values"], extra.get("bias"), weights=weights)
        return self.output(packing.pack_heads(unfold_rows(context, packing.width))), (
            None if weight is None else unfold_rows(weight, packing.width)
        )

    def attend(
        self,
        query: Tensor,
        keys: Tensor,
        values: Tensor,
        bias: Tensor | None = None,
        causal: bool = False,
        weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """(B, heads, Q, d), twice (B, heads, T, d), bias (B, 1, 1 or Q, T) -> (B, heads, Q, d), (B, heads, Q, T)

        The bias is added to scores: -inf where a query may not attend. `causal` replaces it: query i sees keys 0..i.
        """
        if bias is not None:
            bias = bias.to(query.dtype)
        if not weights and not self.dropout.active:
            return scaled_dot_product_attention(query, keys, values, bias, is_causal=causal), None
        if causal:
            bias = query.new_full((query.shape[2], keys.shape[2]), float("-inf")).triu(1)
        scores = torch.matmul(query * query.shape[-1] ** -0.5, keys.transpose(2, 3))
        if bias is not None:
            scores = scores + bias
        weight = torch.softmax(scores, dim=-1)
        return self.dropout(weight) @ values, weight if weights else None


def mask_bias(mask: Tensor) -> Tensor:
    """A bias for attention scores: 0, or -inf where the mask is false.  (B, T) or (B, Q, T) -> (B, 1, 1 or Q, T)"""
    added = torch.zeros(mask.shape, device=mask.device).masked_fill_(~mask, float("-inf"))
    return added[:, None, None] if mask.dim() == 2 else added[:, None]


def fold_rows(values: Tensor, sources: int) -> Tensor:
    """Fold the rows of one source into one longer query.  (rows, heads, Q, ...) -> (B, heads, n * Q, ...)"""
    if len(values) == sources:
        return values
    return values.unflatten(0, (sources, -1)).transpose(1, 2).flatten(2, 3)


def unfold_rows(values: Tensor, width: int) -> Tensor:
    """The inverse of `fold_rows`.  (B, heads, n * Q, ...) -> (rows, heads, Q, ...)"""
    if values.shape[2] == width:
        return values
    return values.unflatten(2, (-1, width)).transpose(1, 2).flatten(0, 1)
