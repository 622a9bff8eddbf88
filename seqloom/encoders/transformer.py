"""Transformer encoder. Vaswani et al. 2017, section 3.1."""

from collections.abc import Sequence
from typing import Literal, cast

import torch
from torch import Tensor, nn

from seqloom.attention.multihead import bias
from seqloom.contracts import Encoder
from seqloom.layers.embedding import Positioned, reading
from seqloom.layers.mean import masked_mean
from seqloom.layers.packing import Packing
from seqloom.layers.transformer import Norm, TransformerLayer
from seqloom.types import Memory, Padded


class Transformer(Encoder):
    """Every position looks at every other, layer after layer."""

    def __init__(
        self,
        *,
        vocabulary: int | None = None,
        features: int | None = None,
        size: int = 256,
        layers: int = 3,
        heads: int = 4,
        hidden: int = 1024,
        dropout: float = 0.1,
        norm: Norm = "pre",
        positions: Literal["sinusoidal", "learned"] = "sinusoidal",
        longest: int = 512,
    ):
        super().__init__()
        self.output_size = size
        self.embedding = reading(vocabulary, features, size, scaled=True)
        self.positioned = Positioned(size=size, positions=positions, longest=longest, dropout=dropout)
        self.layers = cast(
            Sequence[TransformerLayer],
            nn.ModuleList(
                TransformerLayer(size=size, heads=heads, hidden=hidden, dropout=dropout, norm=norm)
                for _ in range(layers)
            ),
        )
        self.norm = nn.LayerNorm(size) if norm == "pre" else nn.Identity()

    def forward(self, source: Padded, attention: bool = False) -> Memory:
        packing = Packing(source.mask)
        visible = None if packing.full else bias(packing.mask)
        values = self.positioned(self.embedding(packing.pack(source.values)), packing.offsets())  # (N, size)
        weights: list[Tensor] = []
        for layer in self.layers:
            values, weight = layer.encode(values, packing, visible, attention)
            if weight is not None:
                weights.append(weight)
        states = packing.unpack(self.norm(values))  # (B, T, size)
        summary = masked_mean(Padded(states, source.lengths))
        extra = {"attention": torch.stack(weights, dim=1)} if attention else {}  # (B, layers, heads, T, T)
        return Memory(states, source.lengths, {"summary": summary}, extra)
