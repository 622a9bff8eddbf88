"""Transformer layers, before or after normalisation.

Vaswani et al. 2017, section 3.1 (`norm="post"`); Xiong et al. 2020 for `norm="pre"`, which trains without care.
"""

from typing import Literal

import torch
from torch import Tensor, nn

from seqloom.attention.multihead import MultiHead
from seqloom.types import Memory, State

Norm = Literal["pre", "post"]


class Residual(nn.Module):
    """x + f(norm(x)), or norm(x + f(x))."""

    def __init__(self, *, size: int, norm: Norm, dropout: float):
        super().__init__()
        self.before = norm == "pre"
        self.norm = nn.LayerNorm(size)
        self.dropout = nn.Dropout(dropout)

    def enter(self, values: Tensor) -> Tensor:
        return self.norm(values) if self.before else values

    def leave(self, values: Tensor, change: Tensor) -> Tensor:
        values = values + self.dropout(change)
        return values if self.before else self.norm(values)


class FeedForward(nn.Module):
    """Two linear maps with a bend between, at each position for itself."""

    def __init__(self, *, size: int, hidden: int, dropout: float):
        super().__init__()
        self.inner = nn.Linear(size, hidden)
        self.outer = nn.Linear(hidden, size)
        self.dropout = nn.Dropout(dropout)

    def forward(self, values: Tensor) -> Tensor:
        return self.outer(self.dropout(torch.relu(self.inner(values))))


class TransformerLayer(nn.Module):
    """Self-attention, attention to a memory if there is one, feed-forward.

    The state of a causal layer is its cache: {"keys", "values"} of all positions so far, (rows, t, size).
    """

    def __init__(
        self,
        *,
        size: int,
        heads: int = 4,
        hidden: int = 1024,
        memory_size: int = 0,
        dropout: float = 0.0,
        norm: Norm = "pre",
    ):
        super().__init__()
        self.self_attention = MultiHead(query_size=size, memory_size=size, heads=heads, dropout=dropout)
        self.self_residual = Residual(size=size, norm=norm, dropout=dropout)
        if memory_size:
            self.cross_attention = MultiHead(query_size=size, memory_size=memory_size, heads=heads, dropout=dropout)
            self.cross_residual = Residual(size=size, norm=norm, dropout=dropout)
        self.feed_forward = FeedForward(size=size, hidden=hidden, dropout=dropout)
        self.feed_residual = Residual(size=size, norm=norm, dropout=dropout)

    def encode(self, values: Tensor, mask: Tensor, weights: bool = False) -> tuple[Tensor, Tensor | None]:
        """Every position sees every real one.  (B, T, size), (B, T)"""
        entered = self.self_residual.enter(values)
        keys, states = self.self_attention.keys_values(entered)
        change, weight = self.self_attention.attend(entered, keys, states, mask[:, None, None], weights=weights)
        values = self.self_residual.leave(values, change)
        return self.feed(values), weight

    def decode(
        self,
        values: Tensor,
        memory: Memory,
        cache: State,
        allowed: Tensor | None,
        weights: bool = False,
    ) -> tuple[Tensor, State, Tensor | None, Tensor | None]:
        """New positions see the cached ones, each other backwards, and the memory.

        values (rows, U, size); allowed (rows, 1, U, t + U), None for a causal mask without cache.
        Returns values, the longer cache, and the weights on the memory and on the positions.
        """
        entered = self.self_residual.enter(values)
        keys, states = self.self_attention.keys_values(entered)
        if cache["keys"].shape[1]:
            keys = torch.cat([cache["keys"], keys], dim=1)  # (rows, t + U, size)
            states = torch.cat([cache["values"], states], dim=1)
        change, self_weight = self.self_attention.attend(
            entered, keys, states, allowed, causal=allowed is None, weights=weights
        )
        values = self.self_residual.leave(values, change)
        cross_weight = None
        if hasattr(self, "cross_attention"):
            entered = self.cross_residual.enter(values)
            change, _, cross_weight = self.cross_attention(entered, memory, {}, weights)
            values = self.cross_residual.leave(values, change)
        return self.feed(values), {"keys": keys, "values": states}, cross_weight, self_weight

    def feed(self, values: Tensor) -> Tensor:
        return self.feed_residual.leave(values, self.feed_forward(self.feed_residual.enter(values)))
