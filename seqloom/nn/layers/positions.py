"""Positional encodings."""

import math

import torch
from torch import Tensor, nn


class Sinusoidal(nn.Module):
    """PE(p, 2i) = sin(p / 10000^(2i / d)), PE(p, 2i + 1) = cos(same). Vaswani et al. 2017, section 3.5."""

    frequencies: Tensor

    def __init__(self, *, size: int):
        super().__init__()
        if size % 2:
            raise ValueError(f"sinusoidal positions need an even size, not {size}: choose an even one")
        self.register_buffer("frequencies", torch.exp(torch.arange(0, size, 2) * (-math.log(10000.0) / size)), False)
        self.table = torch.zeros(0, size)  # grows to the largest position so far

    def forward(self, positions: Tensor) -> Tensor:
        """(...) -> (..., size)"""
        count = int(positions.max()) + 1 if positions.numel() else 0
        current = self.table.device == self.frequencies.device and self.table.dtype == self.frequencies.dtype
        if not current or count > len(self.table):
            with torch.inference_mode(False):  # so that training can use the table too
                self.table = self.compute(torch.arange(2 * count, device=self.frequencies.device))
        return self.table[positions]

    def compute(self, positions: Tensor) -> Tensor:
        """The same without a table, for streams that may never end.  (...) -> (..., size)"""
        angles = positions[..., None] * self.frequencies
        return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)


class Learned(nn.Module):
    """A learned vector for each of `longest` positions; the last one serves all beyond."""

    def __init__(self, *, size: int, longest: int = 512):
        super().__init__()
        self.table = nn.Embedding(longest, size)
        nn.init.normal_(self.table.weight, std=size**-0.5)

    def forward(self, positions: Tensor) -> Tensor:
        """(...) -> (..., size)"""
        return self.table(positions.clamp(max=self.table.num_embeddings - 1))
