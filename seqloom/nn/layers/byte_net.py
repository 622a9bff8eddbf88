"""The residual blocks of ByteNet. Kalchbrenner, Espeholt, Simonyan, van den Oord, Graves & Kavukcuoglu 2016, fig. 3.

x + W_2 f(convolution(f(W_1 f(x)))), where f is layer normalisation and a ReLU; the convolution is dilated and works on
half of the channels.
"""

from collections.abc import Sequence
from typing import cast

from torch import Tensor, nn

from seqloom.nn.layers.convolution import Convolution
from seqloom.nn.ops.dropout import Dropout
from seqloom.nn.ops.linear import Linear
from seqloom.types import Padded, State


class ByteNetBlock(nn.Module):
    """One residual block; causal ones keep the last inputs of their convolution as a state."""

    def __init__(self, *, size: int, kernel: int, dilation: int, causal: bool, dropout: float):
        super().__init__()
        half = max(size // 2, 1)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for width in (size, half, half))
        self.narrow = Linear(size, half)
        self.convolution = Convolution(
            input_size=half, output_size=half, kernel=kernel, dilation=dilation, causal=causal, variance=2.0
        )
        self.widen = Linear(half, size)
        self.dropout = Dropout(dropout)

    def enter(self, values: Tensor) -> Tensor:
        """What the convolution reads.  (B, T, size) -> (B, T, half)"""
        narrow = self.narrow(self.norms[0](values).relu())
        return self.norms[1](narrow).relu()

    def leave(self, values: Tensor, change: Tensor) -> Tensor:
        return self.dropout.add(values, self.widen(self.norms[2](change).relu()))

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        """A whole sequence, zeros where the mask (B, T, 1) is false.  (B, T, size) -> (B, T, size)"""
        return self.leave(values, self.convolution(self.enter(values) * mask))

    def extend(self, inputs: Padded, before: Tensor) -> tuple[Tensor, Tensor]:
        """More of a sequence, and the state for the next part of it.  (rows, U, size) -> (rows, U, size)"""
        change, after = self.convolution.extend(Padded(self.enter(inputs.values), inputs.lengths), before)
        return self.leave(inputs.values, change), after


class ByteNetStack(nn.Module):
    """Blocks with `dilations` from the bottom up, repeated if there are more layers, and a last normalisation."""

    def __init__(self, *, size: int, layers: int, kernel: int, dilations: Sequence[int], causal: bool, dropout: float):
        super().__init__()
        if layers < 1 or not dilations:
            raise ValueError(f"layers = {layers} must be 1 or more, and dilations = {[*dilations]} not be empty")
        self.blocks = cast(
            Sequence[ByteNetBlock],
            nn.ModuleList(
                ByteNetBlock(
                    size=size,
                    kernel=kernel,
                    dilation=dilations[layer % len(dilations)],
                    causal=causal,
                    dropout=dropout,
                )
                for layer in range(layers)
            ),
        )
        self.norm = nn.LayerNorm(size)

    @property
    def receptive_field(self) -> int:
        """How many inputs an output depends on: 1 + the sum of (kernel - 1) * dilation."""
        return 1 + sum(block.convolution.context for block in self.blocks)

    def start(self, rows: int) -> State:
        return {str(layer): block.convolution.start(rows) for layer, block in enumerate(self.blocks)}

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        """(B, T, size) -> (B, T, size)"""
        for block in self.blocks:
            values = block(values, mask)
        return self.norm(values).relu()

    def extend(self, inputs: Padded, state: State) -> tuple[Tensor, State]:
        """(rows, U, size) -> (rows, U, size)"""
        values, after = inputs.values, {}
        for layer, block in enumerate(self.blocks):
            values, after[str(layer)] = block.extend(Padded(values, inputs.lengths), state[str(layer)])
        return self.norm(values).relu(), after
