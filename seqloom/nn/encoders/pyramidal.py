"""Pyramidal recurrent encoder: each layer reads a few outputs of the one below as one input, which shortens the memory.

Chan et al. 2016 ("Listen, attend and spell"), eq. 5: h^j_i = BLSTM(h^j_{i-1}, [h^{j-1}_{2i}; h^{j-1}_{2i+1}]), above a
bottom layer that reads every input. An incomplete last group is filled up with zeros.
"""

from collections.abc import Callable, Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from seqloom.contracts import Cell, Encoder
from seqloom.nn.cells.lstm import LSTM
from seqloom.nn.encoders.recurrent import recurrent_memory, run_layer
from seqloom.nn.layers.embedding import input_layer
from seqloom.nn.ops.dropout import Dropout
from seqloom.types import Memory, Padded, State


class Pyramidal(Encoder):
    """The memory of T inputs has T / reduce^(layers - 1) states, rounded up."""

    def __init__(
        self,
        *,
        vocabulary: int | None = None,
        features: int | None = None,
        embedding_size: int = 256,
        size: int = 256,
        layers: int = 4,
        reduce: int = 2,
        cell: Callable[..., Cell] = LSTM,
        bidirectional: bool = True,
        dropout: float = 0.0,
    ):
        super().__init__()
        for name, value in (("layers", layers), ("reduce", reduce)):
            if value < 1:
                raise ValueError(f"{name} = {value} must be 1 or more")
        self.reduce, self.stride = reduce, reduce ** (layers - 1)
        self.embedding = input_layer(vocabulary, features, embedding_size)
        self.dropout = Dropout(dropout)
        self.output_size = 2 * size if bidirectional else size
        widths = [embedding_size, *[self.output_size * reduce] * (layers - 1)]

        def cells(widths: list[int]) -> Sequence[Cell]:
            return cast(Sequence[Cell], nn.ModuleList(cell(input_size=width, size=size) for width in widths))

        self.forwards = cells(widths)
        self.backwards = cells(widths if bidirectional else [])

    def forward(self, source: Padded, attention: bool = False) -> Memory:
        memory, _ = self.run_layers(source, self.start_state(len(source.lengths)), closed=True)
        return memory

    @property
    def streams(self) -> bool:
        return not len(self.backwards)

    def start(self, rows: int) -> State:
        return self.start_state(rows) if self.streams else super().start(rows)

    def extend(self, chunk: Padded, state: State, closed: bool) -> tuple[Memory, State]:
        return self.run_layers(chunk, state, closed) if self.streams else super().extend(chunk, state, closed)

    def start_state(self, rows: int) -> State:
        """For each layer the state of its cell, and outputs of the layer below that do not fill a group yet."""
        start: State = {}
        for layer, cell in enumerate(self.forwards):
            start[str(layer)] = {"cell": cell.start(rows)}
            if layer:
                start[str(layer)]["rest"] = next(cell.parameters()).new_zeros(rows, 0, self.output_size)
        return start

    def run_layers(self, source: Padded, state: State, closed: bool) -> tuple[Memory, State]:
        """Run all layers from a state on; incomplete groups wait for more input until the source is closed."""
        after: State = {}
        inputs = Padded(self.embedding(source.values), source.lengths)
        for layer, cell in enumerate(self.forwards):
            number, rest = str(layer), {}
            if layer:
                joined = Padded(
                    torch.cat([state[number]["rest"], inputs.values], dim=1),
                    inputs.lengths + state[number]["rest"].shape[1],
                )
                inputs, rest["rest"] = group(joined, self.reduce, closed)
            inputs = Padded(self.dropout(inputs.values), inputs.lengths)
            back = self.backwards[layer] if len(self.backwards) else None
            outputs, final = run_layer(inputs, cell, state[number]["cell"], back)
            inputs, after[number] = Padded(outputs, inputs.lengths), {"cell": final, **rest}
        layers = {number: layer["cell"] for number, layer in after.items()}
        return recurrent_memory(inputs.values, inputs.lengths, layers, closed), after


def group(inputs: Padded, reduce: int, closed: bool) -> tuple[Padded, Tensor]:
    """Concatenate every `reduce` values; returns the rest too. Once closed, zeros fill the last group and none is left.

    (B, T, D) -> (B, T / reduce, reduce * D), (B, rest, D)
    """
    values, lengths = inputs.values, inputs.lengths
    if closed:
        values = values.masked_fill(~inputs.mask[:, :, None], 0)  # outputs beyond a row's end are undefined
        values = pad(values, (0, 0, 0, -values.shape[1] % reduce))
        lengths = lengths + -lengths % reduce
    else:  # chunks of a stream have no padding
        lengths = lengths - lengths % reduce
    whole = values.shape[1] - values.shape[1] % reduce
    groups = values[:, :whole].reshape(len(values), whole // reduce, reduce * values.shape[2])
    return Padded(groups, lengths // reduce), values[:, whole:]
