"""The layers of WaveNet: causal dilated convolutions with gates, residual and skip connections.

van den Oord et al. 2016 (WaveNet), section 2. Of a layer with input x and condition c
    z = tanh(W_f * x + V_f c) sigmoid(W_g * x + V_g c),  output x + W_r z,  skip W_s z
and the sum of all skips is what the softmax sees, after two ReLUs.
"""

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from seqloom.nn.layers.convolution import Convolution
from seqloom.nn.ops.dropout import Dropout
from seqloom.types import Padded, State


class Layer(nn.Module):
    """State: the last inputs of its convolution (rows, context, size)."""

    def __init__(self, *, size: int, skip: int, kernel: int, dilation: int, dropout: float):
        super().__init__()
        self.size = size
        self.convolution = Convolution(input_size=size, output_size=2 * size, kernel=kernel, dilation=dilation)
        self.leave, self.dropout = nn.Linear(size, size + skip), Dropout(dropout)
        nn.init.normal_(self.leave.weight, std=(4 / size) ** 0.5)  # what comes out of a gate has a quarter of variance

    def forward(self, inputs: Padded, before: Tensor, given: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Outputs (rows, U, size), skips (rows, U, skip) and state; `given` is added to the gates."""
        gates, after = self.convolution.extend(inputs, before)
        signal, opening = (gates if given is None else gates + given).chunk(2, dim=-1)
        found = self.leave(self.dropout(torch.tanh(signal) * torch.sigmoid(opening)))
        return inputs.values + found[..., : self.size], found[..., self.size :], after


class WaveNetStack(nn.Module):
    """Layers with `dilations` from the bottom up, repeated if there are more layers."""

    def __init__(self, *, size: int, skip: int, layers: int, kernel: int, dilations: Sequence[int], dropout: float):
        super().__init__()
        if layers < 1 or not dilations:
            raise ValueError(f"layers = {layers} must be 1 or more, and dilations = {[*dilations]} not be empty")
        self.layers = cast(
            Sequence[Layer],
            nn.ModuleList(
                Layer(size=size, skip=skip, kernel=kernel, dilation=dilations[layer % len(dilations)], dropout=dropout)
                for layer in range(layers)
            ),
        )

    @property
    def receptive_field(self) -> int:
        """How many inputs an output depends on: 1 + the sum of (kernel - 1) * dilation."""
        return 1 + sum(layer.convolution.context for layer in self.layers)

    def start(self, rows: int) -> State:
        return {str(number): layer.convolution.start(rows) for number, layer in enumerate(self.layers)}

    def extend(self, inputs: Padded, state: State, given: Sequence[Tensor | None]) -> tuple[Tensor, State]:
        """The mean of all skips, of about the variance of one.  (rows, U, size) -> (rows, U, skip)"""
        values, after, skips = inputs.values, State(), []
        for number, (layer, own) in enumerate(zip(self.layers, given, strict=True)):
            values, skip, after[str(number)] = layer(Padded(values, inputs.lengths), state[str(number)], own)
            skips.append(skip)
        return torch.stack(skips).sum(0) * len(skips) ** -0.5, after
