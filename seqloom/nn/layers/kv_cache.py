"""What a Transformer has said, as a tree: hypotheses of one source share their beginnings.

Each new token of each row is a node, with a key and a value in every layer. The nodes of a source stand in one buffer
in the order in which they came, and a row knows which of them it sees. So to re-rank hypotheses moves no key: it
changes who sees what. Nodes that no row sees any more are left behind when the buffer is full.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

LEAST_ROOM = 16  # a new buffer has room for so many tokens a row, or half of what it holds


class Buffer:
    """Of each layer (2, B, heads, capacity, d): keys and values. The only thing here that changes.

    Only the newest history writes into it; an older one that grows gets a copy.
    """

    def __init__(self, capacity: int, filled: int, layers: list[Tensor]):
        self.capacity, self.filled, self.layers = capacity, filled, layers

    def write(self, layer: int, begin: int, entries: Tensor) -> Tensor:
        """Entries (2, B, heads, m, d) at the places from `begin`; all up to the last of them is returned."""
        end = begin + entries.shape[3]
        if layer == len(self.layers):
            if end == self.capacity:
                self.layers.append(entries)
                return entries
            parts, rows, heads, _, size = entries.shape
            self.layers.append(entries.new_empty(parts, rows, heads, self.capacity, size))
        known, differentiable = self.layers[layer], torch.is_grad_enabled() and entries.requires_grad
        if differentiable or known.requires_grad or known.shape[3] < end:  # what backward needs is not overwritten
            self.layers[layer] = torch.cat([known[:, :, :, :begin], entries], dim=3)
        else:
            known[:, :, :, begin:end] = entries
        return self.layers[layer][:, :, :, :end]


@dataclass(frozen=True)
class KVCache:
    """The nodes of B sources, n rows each. In a state it stands where an array with rows first may stand."""

    seen: Tensor  # (B, n, nodes): which nodes a row sees
    buffer: Buffer
    whole: bool = True  # every row sees all nodes: no mask is needed
    length: int = 0  # tokens a row of the last growth
    bias: Tensor | None = None  # what was added to its scores, (B, 1, n * U, nodes): -inf where a row may not look
    causal: bool = False  # instead of a bias: it was the first, and token i sees tokens 0..i

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
        """With room for new tokens of all rows; mask (rows, U) tells the real ones, which come first."""
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
        """Keys and values of the new tokens, (2, rows, heads, U, d) -> those of all nodes, (2, B, heads, nodes, d)"""
        count, rows, nodes = self.seen.shape
        if rows > 1:
            entries = entries.unflatten(1, (count, rows)).transpose(2, 3).flatten(3, 4)
        return self.buffer.write(layer, nodes - rows * self.length, entries)

    def with_room(self, new: int) -> KVCache:
        """The same, where so many nodes may be written."""
        if self.nodes == self.buffer.filled and self.nodes + new <= self.buffer.capacity:
            return self
        seen, kept = self.seen, None
        if seen.shape[1] > 1 and self.nodes:
            alive = seen.any(dim=1)  # (B, nodes)
            count = int(alive.sum(dim=1).max())
            kept = alive.int().argsort(dim=1, descending=True, stable=True)[:, :count]
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
        assert dim == 0, "a history has rows first"
        (count, each, nodes), wanted = self.seen.shape, len(rows)
        sources = rows // each
        seen = self.seen.flatten(0, 1).index_select(0, rows)
        every = torch.arange(count, device=rows.device)
        if count and wanted % count == 0 and torch.equal(sources, every.repeat_interleave(wanted // count)):
            return replace(self, seen=seen.view(count, wanted // count, nodes))
        # Some sources have left: theirs are not kept. Rows that do not stand together become sources of their own.
        together = wanted % each == 0 and torch.equal(sources, sources[::each].repeat_interleave(each))
        chosen = sources[::each] if together else sources
        layers = [entries.index_select(1, chosen) for entries in self.buffer.layers]
        buffer = Buffer(self.buffer.capacity, nodes, layers)
        return replace(self, seen=seen.view(len(chosen), each if together else 1, nodes), buffer=buffer)

    def hold(self, mask: Tensor, before: KVCache) -> KVCache:
        """These rows, except that those in the mask see what they saw before.  (rows,)"""
        count, rows, _ = self.seen.shape
        held = mask.view(count, rows, 1)
        seen = self.seen & ~held
        if not before.nodes:
            return replace(self, seen=seen, whole=False)
        joined = torch.cat([seen, before.seen & held], dim=2)  # nodes of both, side by side
        layers = [
            torch.cat([new[:, :, :, : self.nodes], old[:, :, :, : before.nodes]], dim=3)
            for new, old in zip(self.buffer.layers, before.buffer.layers, strict=True)
        ]
        return KVCache(joined, Buffer(joined.shape[2], joined.shape[2], layers), whole=False)
