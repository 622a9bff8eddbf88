"""Whole frames of a film as maps of their own height and width (Kalchbrenner et al. 2017, "Video Pixel Networks").

A multiplicative unit has four convolutions over a map h,
    g1, g2, g3 = sigmoid(W1 * h), sigmoid(W2 * h), sigmoid(W3 * h),  u = tanh(W4 * h),  m(h) = g1 tanh(g2 h + g3 u),
and a residual block adds two of them, at half the size, to its input (equations 4 and 5).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from seqloom.nn.ops.dropout import Dropout


class MultiplicativeUnit(nn.Module):
    def __init__(self, size: int, kernel: int, dilation: int):
        super().__init__()
        padding = kernel // 2 * dilation
        self.gates = nn.Conv2d(size, 4 * size, kernel, padding=padding, dilation=dilation)

    def forward(self, values: Tensor) -> Tensor:
        """(B, D, H, W)"""
        *gates, update = self.gates(values).chunk(4, dim=1)
        whole, keep, enter = (torch.sigmoid(gate) for gate in gates)
        return whole * torch.tanh(keep * values + enter * torch.tanh(update))


class MultiplicativeBlock(nn.Module):
    def __init__(self, size: int, kernel: int, dilation: int, dropout: float):
        super().__init__()
        inner = max(size // 2, 1)
        self.enter, self.leave = nn.Conv2d(size, inner, 1), nn.Conv2d(inner, size, 1)
        self.units = nn.Sequential(*(MultiplicativeUnit(inner, kernel, dilation) for _ in range(2)))
        self.dropout = Dropout(dropout)

    def forward(self, values: Tensor) -> Tensor:
        """(B, D, H, W)"""
        changed: Tensor = self.dropout(self.leave(self.units(self.enter(values))))
        return values + changed


class FrameNetwork(nn.Module):
    """A frame (B, inputs, H, W) -> (B, size, H, W): blocks whose convolutions are 1, 2, 4, 8, 1, 2, ... apart."""

    def __init__(self, inputs: int, *, size: int, layers: int, kernel: int, dropout: float):
        super().__init__()
        self.enter = nn.Conv2d(inputs, size, kernel, padding=kernel // 2)
        self.blocks = nn.Sequential(
            *(MultiplicativeBlock(size, kernel, 2 ** (layer % 4), dropout) for layer in range(layers))
        )

    def forward(self, frames: Tensor) -> Tensor:
        found: Tensor = self.blocks(self.enter(frames))
        return found
