"""The encoder of ByteNet: dilated convolutions over the source, drawn out to the length of the longest output.

Kalchbrenner et al. 2016, sections 3.1 to 3.4.
"""

import math

import torch
from torch.nn.functional import pad

from seqloom.contracts import Encoder
from seqloom.nn.layers.byte_net import ByteNetStack
from seqloom.nn.layers.embedding import input_layer
from seqloom.nn.ops.dropout import Dropout
from seqloom.nn.ops.mean import masked_mean
from seqloom.types import Memory, Padded


class ByteNet(Encoder):
    """A source of n tokens gets ceil(unfold_ratio * n) + unfold_offset states: a |s| + b of section 3.2."""

    def __init__(
        self,
        *,
        vocabulary: int | None = None,
        features: int | None = None,
        size: int = 256,
        layers: int = 6,
        kernel: int = 3,
        dilations: tuple[int, ...] = (1, 2, 4),
        unfold_ratio: float = 1.2,
        unfold_offset: int = 0,
        dropout: float = 0.1,
    ):
        super().__init__()
        if unfold_ratio < 1 or unfold_offset < 0:
            raise ValueError(
                f"unfold_ratio = {unfold_ratio} must be 1 or more, unfold_offset = {unfold_offset} 0 or more"
            )
        self.output_size = size
        self.unfold_ratio, self.unfold_offset = unfold_ratio, unfold_offset
        self.embedding = input_layer(vocabulary, features, size)
        self.dropout = Dropout(dropout)
        self.stack = ByteNetStack(
            size=size, layers=layers, kernel=kernel, dilations=dilations, causal=False, dropout=dropout
        )

    def count_states(self, length: int) -> int:
        return math.ceil(length * self.unfold_ratio) + self.unfold_offset

    def forward(self, source: Padded, attention: bool = False) -> Memory:
        lengths = torch.ceil(source.lengths.double() * self.unfold_ratio).long() + self.unfold_offset
        embedded = self.dropout(self.embedding(source.values)) * source.mask[:, :, None]
        drawn = Padded(pad(embedded, (0, 0, 0, int(lengths.max()) - embedded.shape[1])), lengths)
        states = self.stack(drawn.values, drawn.mask[:, :, None])
        return Memory(states, lengths, {"summary": masked_mean(Padded(states, lengths))})
