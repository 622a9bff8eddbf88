"""The decoder of MultiModel: causal convolutions, attention and a mixture of experts in every layer.

Kaiser et al. 2017, section 2.4; see seqloom/nn/encoders/multi_model.py.
"""

from collections.abc import Sequence
from typing import cast

from torch import Tensor, nn

from seqloom.nn.decoders.transformer import Transformer
from seqloom.nn.layers.multi_model import ConvolutionBlock
from seqloom.nn.ops.packing import Packing
from seqloom.types import Memory, Padded, State


class MultiModel(Transformer):
    """State: that of a Transformer, and {"convolutions": the last inputs of each}."""

    def __init__(
        self,
        *,
        vocabulary: int,
        memory_size: int,
        bos: int,
        eos: int | None,
        size: int = 256,
        layers: int = 3,
        heads: int = 4,
        hidden: int = 256,
        kernel: int = 3,
        experts: int = 8,
        active_experts: int = 2,
        dropout: float = 0.1,
        tied: bool = True,
        length_ratio: float = 2.0,
        length_offset: int = 10,
    ):
        super().__init__(
            vocabulary=vocabulary,
            memory_size=memory_size,
            bos=bos,
            eos=eos,
            size=size,
            layers=layers,
            heads=heads,
            hidden=hidden,
            experts=experts,
            active_experts=active_experts,
            dropout=dropout,
            tied=tied,
            length_ratio=length_ratio,
            length_offset=length_offset,
        )
        self.convolutions = cast(
            Sequence[ConvolutionBlock],
            nn.ModuleList(
                ConvolutionBlock(size=size, kernel=kernel, dilation=2**layer, causal=True, dropout=dropout)
                for layer in range(layers)
            ),
        )

    def start(self, memory: Memory) -> State:
        kept = {str(number): each.convolution.start(memory.rows) for number, each in enumerate(self.convolutions)}
        return {**super().start(memory), "convolutions": kept}

    def before_layer(self, number: int, values: Tensor, packing: Packing, state: State, after: State) -> Tensor:
        inputs = Padded(packing.unpack(values), packing.mask.sum(1))  # (rows, U, size)
        block, name = self.convolutions[number], str(number)
        values, kept = block.extend(inputs, state["convolutions"][name])
        after["convolutions"] = {**after.get("convolutions", {}), name: kept}
        return packing.pack(values)
