"""The encoder of ConvS2S: gated convolutions over the whole source.

Gehring, Auli, Grangier, Yarats & Dauphin 2017, sections 3.1 to 3.3 and 3.5: word and learned position embeddings, then
h^l = (GLU(convolution(h^{l-1})) + h^{l-1}) * sqrt(1/2). The paper also divides the gradients of the encoder by the
number of attentions; here all gradients are exact, and the optimiser's scale takes care of it.
"""

import math
from collections.abc import Sequence
from typing import cast

import torch
from torch import nn
from torch.nn.functional import glu

from seqloom.contracts import Encoder
from seqloom.nn.layers.convolution import Convolution
from seqloom.nn.layers.embedding import input_layer
from seqloom.nn.layers.positions import Learned
from seqloom.nn.ops.dropout import Dropout
from seqloom.nn.ops.linear import Linear
from seqloom.nn.ops.mean import masked_mean
from seqloom.types import Memory, Padded

HALF = math.sqrt(0.5)  # keeps the variance of a sum of two


class ConvS2S(Encoder):
    """States are as wide as the embeddings, which the memory keeps too, as extra["embedded"]."""

    def __init__(
        self,
        *,
        vocabulary: int | None = None,
        features: int | None = None,
        embedding_size: int = 256,
        size: int = 256,
        layers: int = 4,
        kernel: int = 3,
        longest: int = 512,
        dropout: float = 0.1,
    ):
        super().__init__()
        if layers < 1:
            raise ValueError(f"layers = {layers} must be 1 or more")
        self.output_size = embedding_size
        self.embedding = input_layer(vocabulary, features, embedding_size, scaled=True)
        self.positions = Learned(size=embedding_size, longest=longest)
        self.dropout = Dropout(dropout)
        self.enter = Linear(embedding_size, size)
        self.convolutions = cast(
            Sequence[Convolution],
            nn.ModuleList(
                Convolution(
                    input_size=size,
                    output_size=2 * size,
                    kernel=kernel,
                    causal=False,
                    normed=True,
                    variance=4 * (1 - dropout),  # a gate takes three quarters of it
                )
                for _ in range(layers)
            ),
        )
        self.leave = Linear(size, embedding_size)

    def forward(self, source: Padded, attention: bool = False) -> Memory:
        mask = source.mask[:, :, None]
        positions = torch.arange(mask.shape[1], device=mask.device)
        embedded = self.dropout(self.embedding(source.values) + self.positions(positions))  # (B, T, embedding_size)
        values = self.enter(embedded)
        for convolution in self.convolutions:
            change = glu(convolution(self.dropout(values) * mask), dim=-1)  # (B, T, size)
            values = (change + values) * HALF
        states = self.leave(values)
        summary = masked_mean(Padded(states, source.lengths))
        return Memory(states, source.lengths, {"summary": summary}, {"embedded": embedded})
