"""The KV cache of a Transformer decoder, a tree of tokens: hypotheses of one source share their prefixes.

Each new token of each row is a node, with a key and a value in every layer. The nodes of a source are stored in one
buffer in the order of decoding, and each row has a mask of the nodes it sees. Re-ranking hypotheses moves no keys: it
only permutes the masks. Nodes that no row sees any more are dropped when the buffer is full.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

LEAST_ROOM = 16  # a new buffer has room for this many more tokens per row, or for half of what it holds


class Buffer:
    """Keys and values of each layer, (2, B, heads, capacity, d). The only thing here that is changed in place.

    Only the newest cache writes into it; an older one gets a copy before it grows.
    """

    def __init__(self, capacity: int, filled: int, layers: list[Tensor]):
        self.capacity, self.filled, self.layers = capacity, filled, layers

    def write(self, layer: int, begin: int, entries: Tensor) -> Tensor:
        """Write entries (2, B, heads, m, d) at positions from `begin` on; returns everything up to their end."""
        end = begin + entries.shape[3]
        if layer == len(self.layers):
            if end == self.capacity:
                self.layers.append(entries)
                return entries
            parts, rows, heads, _, size = entries.shape
            self.layers.append(entries.new_empty(parts, rows, heads, self.capacity, size))
        stored, differentiable = self.layers[layer], torch.is_grad_enabled() and entries.requires_grad
        if differentiable or stored.requires_grad or stored.shape[3] < end:  # do not overwrite what backward needs
            self.layers[layer] = torch.cat([stored[:, :, :, :begin], entries], dim=3)
        else:
            stored[:, :, :, begin:end] = entries
        return self.layers[layer][:, :, :, :end]


@dataclass(frozen=True)
class KVCache:
    """The nodes of B sources with n rows each. An entry of a decoder's state: `index_select` and `hold` act on rows."""

    seen: Tensor  # (B, n, nodes): which nodes each row sees
    buffer: Buffer
    whole: bool = True  # every row sees all nodes: no mask is needed
    length: int = 0  # U, the number of new tokens per row in the last `grow`
    bias: Tensor | None = None  # of attention scores of these, (B, 1, n * U, nodes): -inf where a row may not attend
    causal: bool = False  # instead of a bias, for the first tokens: token i sees tokens 0..i

    @classmethod
    def empty(cls, rows: int, device: torch.device) -> KVCache:
        return cls(torch.ones(rows, 1, 0, dtype=torch.bool, device=device), Buffer(0, 0, []))

    @property
    def sources(self) -> int:
        return self.seen.shape[0]

    @property
    def nodes(self) -> int:
        return self.seen.shape[2]

    def grow(self, mask: Tensor, full: bool) -> KVCache:
        """A cache with nodes for U new tokens per row; `mask` (rows, U) is true at real tokens, padding comes last."""
        (count, rows, nodes), length = self.seen.shape, mask.shape[1]
        before = self.with_room(rows * length)
        itself = torch.eye(rows, dtype=torch.bool, device=mask.device)
        if whole := before.whole and full and rows == 1:
            seen = mask.new_ones(count, 1, nodes + length)
        else:
            own = itself[:, :, None] & mask.view(count, 1, rows, length)  # (B, n, n, U)
            seen = torch.cat([before.seen, own.flatten(2)], dim=2)
        before.buffer.filled = seen.shape[2]
        if rows == 1 and (not nodes or (whole and length == 1)):
            return KVCache(seen, before.buffer, whole, length, causal=not nodes)
        causal = torch.ones(length, length, dtype=torch.bool, device=mask.device).tril()
        new = (itself[:, None, :, None] & causal[:, None]).flatten(2).flatten(0, 1)  # (n * U, n * U)
        old = before.seen.repeat_interleave(length, dim=1)  # (B, n * U, nodes before)
        allowed = torch.cat([old, new.expand(count, -1, -1)], dim=2)[:, None]
        bias = torch.zeros(allowed.shape, device=mask.device).masked_fill_(~allowed, float("-inf"))
        return KVCache(seen, before.buffer, whole, length, bias)

    def write(self, layer: int, entries: Tensor) -> Tensor:
        """Keys and values of new tokens, (2, rows, heads, U, d) -> those of all nodes, (2, B, heads, nodes, d)"""
        count, rows, nodes = self.seen.shape
        if rows > 1:
            entries = entries.unflatten(1, (count, rows)).transpose(2, 3).flatten(3, 4)
        return self.buffer.write(layer, nodes - rows * self.length, entries)

    def with_room(self, new: int) -> KVCache:
        """The same cache with room for `new` more nodes: itself, or a copy in a larger buffer."""
        if self.nodes == self.buffer.filled and self.nodes + new <= self.buffer.capacity:
            return self
        seen, kept = self.seen, None
        if seen.shape[1] > 1 and self.nodes:
            used = seen.any(dim=1)  # (B, nodes)
            count = int(used.sum(dim=1).max())
            kept = used.int().argsort(dim=1, descending=True, stable=True)[:, :count]
            seen = seen.gather(2, kept[:, None].expand(-1, seen.shape[1], -1))
        nodes = seen.shape[2]
        room = max(LEAST_ROOM * new, nodes // 2) if nodes else new
        buffer = Buffer(nodes + room, nodes, [])
        for layer, entries in enumerate(self.buffer.layers):
            entries = entries[:, :, :, : self.nodes]
            if kept is not None:
                entries = entries.gather(
                    3, kept[None, :, None, :, None].expand(*entries.shape[:3], -1, entries.shape[4])
                )
            buffer.write(layer, 0, entries)
        return replace(self, seen=seen, buffer=buffer)

    def index_select(self, dim: int, rows: Tensor) -> KVCache:
        """The given rows, in that order."""
        assert dim == 0, "rows are the first axis of a KV cache"
        (count, each, nodes), wanted = self.seen.shape, len(rows)
        sources = rows // each
        seen = self.seen.flatten(0, 1).index_select(0, rows)
        every = torch.arange(count, device=rows.device)
        if count and wanted % count == 0 and torch.equal(sources, every.repeat_interleave(wanted // count)):
            return replace(self, seen=seen.view(count, wanted // count, nodes))
        # Nodes of finished sources are dropped. If rows of one source are no longer adjacent, each becomes a source.
        adjacent = wanted % each == 0 and torch.equal(sources, sources[::each].repeat_interleave(each))
        chosen = sources[::each] if adjacent else sources
        layers = [entries.index_select(1, chosen) for entries in self.buffer.layers]
        buffer = Buffer(self.buffer.capacity, nodes, layers)
        return replace(self, seen=seen.view(len(chosen), each if adjacent else 1, nodes), buffer=buffer)

    def hold(self, mask: Tensor, before: KVCache) -> KVCache:
        """This cache, but rows in the mask (rows,) see what they saw in `before`."""
        count, rows, _ = self.seen.shape
        held = mask.view(count, rows, 1)
        seen = self.seen & ~held
        if not before.nodes:
            return replace(self, seen=seen, whole=False)
        joined = torch.cat([seen, before.seen & held], dim=2)  # the nodes of both caches
        layers = [
            torch.cat([new[:, :, :, : self.nodes], old[:, :, :, : before.nodes]], dim=3)
            for new, old in zip(self.buffer.layers, before.buffer.layers, strict=True)
        ]
        return KVCache(joined, Buffer(joined.shape[2], joined.shape[2], layers), whole=False)
