"""Causal convolutional encoder: a state depends on its own input and earlier ones, never on later ones.

Causal, dilated convolutions with residual connections: van den Oord et al. 2016 ("WaveNet"), section 2, with the gate
of Dauphin et al. 2017, eq. 1, (X W + b) * sigmoid(X V + c), or with a ReLU.
"""

from collections.abc import Sequence
from typing import Literal, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import glu

from seqloom.contracts import Encoder
from seqloom.nn.layers.convolution import windows
from seqloom.nn.layers.embedding import input_layer
from seqloom.nn.ops.dropout import Dropout
from seqloom.nn.ops.linear import Linear
from seqloom.nn.ops.mean import masked_mean, update_mean
from seqloom.types import Memory, Padded, State


class Block(nn.Module):
    """x + f(convolution(norm(x))), the convolution over `kernel` inputs x_t, x_{t - dilation}, .."""

    def __init__(self, *, size: int, kernel: int, dilation: int, activation: Literal["gated", "relu"], dropout: float):
        super().__init__()
        self.kernel, self.dilation, self.gated = kernel, dilation, activation == "gated"
        self.norm = nn.LayerNorm(size)
        self.linear = Linear(kernel * size, 2 * size if self.gated else size)
        self.dropout = Dropout(dropout)

    @property
    def context(self) -> int:
        """How many earlier inputs an output depends on."""
        return (self.kernel - 1) * self.dilation

    def forward(self, values: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
        """Values (B, T, size) and the normalised inputs before them (B, context, size) -> the same two"""
        inputs, length = torch.cat([before, self.norm(values)], dim=1), values.shape[1]
        change = self.linear(windows(inputs, self.kernel, self.dilation))  # (B, T, size or 2 * size)
        change = glu(change, dim=-1) if self.gated else change.relu()
        return self.dropout.add(values, change), inputs[:, length:]


class Convolution(Encoder):
    """`dilations` of the layers from the bottom up, repeated if there are more layers."""

    def __init__(
        self,
        *,
        vocabulary: int | None = None,
        features: int | None = None,
        size: int = 256,
        layers: int = 4,
        kernel: int = 3,
        dilations: tuple[int, ...] = (1, 2, 4, 8),
        activation: Literal["gated", "relu"] = "gated",
        dropout: float = 0.0,
    ):
        super().__init__()
        for name, value in (("layers", layers), ("kernel", kernel), ("dilations", min(dilations, default=0))):
            if value < 1:
                raise ValueError(f"{name} = {value} must be 1 or more")
        self.output_size = size
        self.embedding = input_layer(vocabulary, features, size)
        self.dropout = Dropout(dropout)
        self.blocks = cast(
            Sequence[Block],
            nn.ModuleList(
                Block(
                    size=size,
                    kernel=kernel,
                    dilation=dilations[layer % len(dilations)],
                    activation=activation,
                    dropout=dropout,
                )
                for layer in range(layers)
            ),
        )
        self.norm = nn.LayerNorm(size)

    def forward(self, source: Padded, attention: bool = False) -> Memory:
        states, _ = self.run_layers(source.values, self.start(len(source.lengths))["layers"])
        return Memory(states, source.lengths, {"summary": masked_mean(Padded(states, source.lengths))})

    @property
    def streams(self) -> bool:
        return True

    def start(self, rows: int) -> State:
        zeros = self.norm.weight.new_zeros
        layers = {str(layer): zeros(rows, block.context, self.output_size) for layer, block in enumerate(self.blocks)}
        frame = torch.zeros(rows, dtype=torch.long, device=self.norm.weight.device)
        return {"layers": layers, "summary": zeros(rows, self.output_size), "frame": frame}

    def extend(self, chunk: Padded, state: State, closed: bool) -> tuple[Memory, State]:
        states, layers = self.run_layers(chunk.values, state["layers"])
        summary, frame = update_mean(state["summary"], state["frame"], states)
        memory = Memory(states, chunk.lengths, {"summary": summary}, closed=closed)
        return memory, {"layers": layers, "summary": summary, "frame": frame}

    def run_layers(self, source: Tensor, before: State) -> tuple[Tensor, State]:
        """Run all layers: states (B, T, size), and the left context of each for the next chunk."""
        values, after = self.dropout(self.embedding(source)), {}
        for layer, block in enumerate(self.blocks):
            values, after[str(layer)] = block(values, before[str(layer)])
        return self.norm(values), after
