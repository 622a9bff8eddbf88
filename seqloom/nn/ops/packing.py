"""Packing: the real positions of a padded batch side by side, so that no layer computes padding.

Position-wise layers work on packed values (N, ...), attention on padded ones. Packing and unpacking copy rows, and each
is the gradient of the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


@dataclass(frozen=True)
class Route:
    """Indices that map packed rows to padded positions and back."""

    rows: Tensor  # (padded,): the packed row of each padded position; 0 at padding
    positions: Tensor  # (packed,): the padded position of each packed row
    padding: Tensor  # the padded positions without a row


class Packing:
    """Which N of the B * T positions of a padded batch are real, and how to move values between both layouts."""

    def __init__(self, mask: Tensor, full: bool | None = None):
        self.mask = mask  # (B, T)
        self.rows, self.width = mask.shape
        self.full = bool(mask.all()) if full is None else full  # no padding: nothing to copy
        self.routes: dict[tuple[int, int], Route] = {}

    @classmethod
    def unpadded(cls, rows: int, width: int, device: torch.device) -> Packing:
        """A batch without padding."""
        return cls(torch.ones(rows, width, dtype=torch.bool, device=device), True)

    def offsets(self, start: Tensor | None = None) -> Tensor:
        """The index of each real position in its row, counted from 0 or from each row's `start` (B,).  (N,)"""
        offsets = torch.arange(self.width, device=self.mask.device)
        return self.pack(offsets.expand(self.rows, -1) if start is None else start[:, None] + offsets)

    def pack(self, values: Tensor) -> Tensor:
        """(B, T, ...) -> (N, ...)"""
        flat = values.flatten(0, 1)
        return flat if self.full else pack(flat, self.route())

    def unpack(self, values: Tensor) -> Tensor:
        """(N, ...) -> (B, T, ...), zeros at padding"""
        if not self.full:
            values = unpack(values, self.route())
        return values.unflatten(0, (self.rows, self.width))

    def unpack_heads(self, values: Tensor, heads: int, parts: int = 1) -> Tensor:
        """(N, parts * heads * d) -> (parts, B, heads, T, d)"""
        size = values.shape[-1] // (parts * heads)
        if self.full:
            if self.width == 1:
                return values.view(self.rows, parts, heads, 1, size).transpose(0, 1)
            return values.view(self.rows, self.width, parts, heads, size).permute(2, 0, 3, 1, 4).contiguous()
        flat = unpack(values.reshape(-1, size), self.route(heads, parts))
        return flat.view(parts, self.rows, heads, self.width, size)

    def pack_heads(self, values: Tensor) -> Tensor:
        """(B, heads, T, d) -> (N, heads * d)"""
        _, heads, _, size = values.shape
        if self.full:
            if self.width == 1:
                return values.reshape(-1, heads * size)
            return values.transpose(1, 2).reshape(-1, heads * size)
        return pack(values.reshape(-1, size), self.route(heads)).view(-1, heads * size)

    def route(self, heads: int = 1, parts: int = 1) -> Route:
        """Between (N, parts, heads) and (parts, B, heads, T), built on first use."""
        if (heads, parts) not in self.routes:
            self.routes[heads, parts] = self.build_route(heads, parts)
        return self.routes[heads, parts]

    def build_route(self, heads: int, parts: int) -> Route:
        real = self.mask[None, :, None].expand(parts, -1, heads, -1).flatten()
        numbers = (self.mask.flatten().cumsum(0) - 1).view(self.mask.shape)  # (B, T): packed indices
        part = torch.arange(parts, device=real.device)[:, None, None, None]
        head = torch.arange(heads, device=real.device)[:, None]
        rows = ((numbers[:, None] * parts + part) * heads + head).flatten().masked_fill_(~real, 0)
        real_positions = real.nonzero()[:, 0]
        positions = torch.empty_like(real_positions)
        positions[rows[real_positions]] = real_positions
        return Route(rows, positions, (~real).nonzero()[:, 0])


class Pack(torch.autograd.Function):
    """The rows at all real positions."""

    @staticmethod
    def forward(context: Any, values: Tensor, route: Route) -> Tensor:
        context.route = route
        return values.index_select(0, route.positions)

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient.index_select(0, context.route.rows).index_fill_(0, context.route.padding, 0), None


class Unpack(torch.autograd.Function):
    """Rows at their positions, zeros elsewhere."""

    @staticmethod
    def forward(context: Any, values: Tensor, route: Route) -> Tensor:
        context.route = route
        return values.index_select(0, route.rows).index_fill_(0, route.padding, 0)

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient.index_select(0, context.route.positions), None


def pack(values: Tensor, route: Route) -> Tensor:
    packed: Tensor = Pack.apply(values, route)
    return packed


def unpack(values: Tensor, route: Route) -> Tensor:
    unpacked: Tensor = Unpack.apply(values, route)
    return unpacked
