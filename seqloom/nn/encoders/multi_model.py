"""The encoder of MultiModel: convolutions, self-attention and a mixture of experts in every layer.

Kaiser, Gomez, Shazeer, Vaswani, Parmar, Jones & Uszkoreit 2017, "One model to learn them all", sections 2.1 to 2.3: a
body made of the three kinds of blocks, which tasks of any kind share; what enters it, a task embeds for itself.
"""

from collections.abc import Sequence
from typing import cast

from torch import Tensor, nn

from seqloom.nn.encoders.transformer import Transformer
from seqloom.nn.layers.multi_model import ConvolutionBlock
from seqloom.nn.ops.packing import Packing


class MultiModel(Transformer):
    """A Transformer with experts; before each layer a convolution, dilated twice as much as the one below."""

    def __init__(
        self,
        *,
        vocabulary: int | None = None,
        features: int | None = None,
        size: int = 256,
        layers: int = 3,
        heads: int = 4,
        hidden: int = 256,
        kernel: int = 3,
        experts: int = 8,
        active_experts: int = 2,
        dropout: float = 0.1,
    ):
        super().__init__(
            vocabulary=vocabulary,
            features=features,
            size=size,
            layers=layers,
            heads=heads,
            hidden=hidden,
            experts=experts,
            active_experts=active_experts,
            dropout=dropout,
        )
        self.convolutions = cast(
            Sequence[ConvolutionBlock],
            nn.ModuleList(
                ConvolutionBlock(size=size, kernel=kernel, dilation=2**layer, causal=False, dropout=dropout)
                for layer in range(layers)
            ),
        )

    def before_layer(self, number: int, values: Tensor, packing: Packing) -> Tensor:
        padded = packing.unpack(values)  # (B, T, size)
        return packing.pack(self.convolutions[number](padded, packing.mask[:, :, None]))
