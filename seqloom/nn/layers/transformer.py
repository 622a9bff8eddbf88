"""Transformer layers, with layer normalisation before or after. All work on packed positions, without padding.

Vaswani et al. 2017, section 3.1 (`norm="post"`); Xiong et al. 2020 for `norm="pre"`, which needs no warm-up.
"""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from seqloom.nn.attention.multihead import MultiHead, fold_rows, unfold_rows
from seqloom.nn.layers.experts import Experts, Routing
from seqloom.nn.layers.kv_cache import KVCache
from seqloom.nn.ops.dropout import Dropout
from seqloom.nn.ops.linear import Linear
from seqloom.nn.ops.packing import Packing
from seqloom.types import Memory

Norm = Literal["pre", "post"]
Activation = Literal["relu", "gelu"]


class Residual(nn.Module):
    """x + f(norm(x)) for "pre", norm(x + f(x)) for "post"."""

    def __init__(self, *, size: int, norm: Norm, dropout: float):
        super().__init__()
        self.before = norm == "pre"
        self.norm = nn.LayerNorm(size)
        self.dropout = Dropout(dropout)

    def enter(self, values: Tensor) -> Tensor:
        return self.norm(values) if self.before else values

    def leave(self, values: Tensor, change: Tensor) -> Tensor:
        values = self.dropout.add(values, change)
        return values if self.before else self.norm(values)


class FeedForward(nn.Module):
    """Two linear layers with a ReLU or a GELU between (Hendrycks & Gimpel 2016), position by position."""

    def __init__(self, *, size: int, hidden: int, dropout: float, activation: Activation = "relu"):
        super().__init__()
        self.inner = Linear(size, hidden)
        self.outer = Linear(hidden, size)
        self.dropout, self.activation = Dropout(dropout), activation

    def forward(self, values: Tensor) -> Tensor:
        inner = self.inner(values)
        if self.activation == "relu":
            return self.outer(self.dropout.after_relu(inner))
        return self.outer(self.dropout(functional.gelu(inner)))


class TransformerLayer(nn.Module):
    """Self-attention, attention to a memory if there is one, feed-forward or with `experts` a mixture of these."""

    def __init__(
        self,
        *,
        size: int,
        heads: int = 4,
        hidden: int = 1024,
        memory_size: int = 0,
        dropout: float = 0.0,
        norm: Norm = "pre",
        activation: Activation = "relu",
        experts: int = 0,
        active_experts: int = 2,
    ):
        super().__init__()
        if experts and activation != "relu":
            raise ValueError(f'activation = "{activation}": experts have a ReLU; leave one of them out')
        self.self_attention = MultiHead(query_size=size, memory_size=size, heads=heads, dropout=dropout)
        self.self_residual = Residual(size=size, norm=norm, dropout=dropout)
        if memory_size:
            self.cross_attention = MultiHead(query_size=size, memory_size=memory_size, heads=heads, dropout=dropout)
            self.cross_residual = Residual(size=size, norm=norm, dropout=dropout)
        self.feed_forward: FeedForward | Experts
        if experts:
            self.feed_forward = Experts(
                size=size, experts=experts, active_experts=active_experts, hidden=hidden, dropout=dropout
            )
        else:
            self.feed_forward = FeedForward(size=size, hidden=hidden, dropout=dropout, activation=activation)
        self.feed_residual = Residual(size=size, norm=norm, dropout=dropout)

    def encode(
        self, values: Tensor, packing: Packing, bias: Tensor | None, weights: bool = False
    ) -> tuple[Tensor, Tensor | None, Routing | None]:
        """Self-attention under a bias.  (N, size), bias (B, 1, 1 or T, T) -> (N, size), (B, heads, T, T)

        The last is which experts the positions used, if there are any.
        """
        values, _, weight, routing = self.extend(values, packing, bias, None, weights)
        return values, weight, routing

    def extend(
        self, values: Tensor, packing: Packing, bias: Tensor | None, past: Tensor | None, weights: bool = False
    ) -> tuple[Tensor, tuple[Tensor, Tensor], Tensor | None, Routing | None]:
        """The same after earlier positions, whose keys and values are `past` (2, B, heads, t, d); also returns all."""
        attention, entered = self.self_attention, self.self_residual.enter(values)
        query, keys, states = attention.queries_keys_values(entered, packing)
        if past is not None:
            keys, states = torch.cat([past[0], keys], dim=2), torch.cat([past[1], states], dim=2)
        context, weight = attention.attend(query, keys, states, bias, weights=weights)
        values = self.self_residual.leave(values, attention.output(packing.pack_heads(context)))
        values, routing = self.feed(values)
        return values, (keys, states), weight, routing

    def decode(
        self,
        values: Tensor,
        packing: Packing,
        memory: Memory,
        cache: KVCache,
        number: int,
        weights: bool = False,
    ) -> tuple[Tensor, Tensor | None, Tensor | None, Routing | None]:
        """New positions attend those before them and the memory. The cache has room for them; this is layer `number`.

        (N, size) -> (N, size), and the weights on the memory (rows, heads, U, T) and on nodes (rows, heads, U, nodes).
        """
        attention, entered = self.self_attention, self.self_residual.enter(values)
        new = attention.queries_keys_values(entered, packing)
        keys, states = cache.write(number, new[1:])
        query = fold_rows(new[0], cache.sources)
        context, self_weight = attention.attend(query, keys, states, cache.bias, cache.causal, weights)
        change = attention.output(packing.pack_heads(unfold_rows(context, packing.width)))
        values = self.self_residual.leave(values, change)
        cross_weight = None
        if hasattr(self, "cross_attention"):
            entered = self.cross_residual.enter(values)
            change, cross_weight = self.cross_attention.attend_memory(entered, packing, memory, weights)
            values = self.cross_residual.leave(values, change)
        self_weight = None if self_weight is None else unfold_rows(self_weight, packing.width)
        values, routing = self.feed(values)
        return values, cross_weight, self_weight, routing

    def feed(self, values: Tensor) -> tuple[Tensor, Routing | None]:
        entered, routing = self.feed_residual.enter(values), None
        if isinstance(self.feed_forward, Experts):
            change, routing = self.feed_forward(entered)
        else:
            change = self.feed_forward(entered)
        return self.feed_residual.leave(values, change), routing
