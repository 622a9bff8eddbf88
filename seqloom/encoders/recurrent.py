"""Recurrent encoder: reads the source symbol by symbol (or vector by vector), in one direction or both.

Sutskever, Vinyals & Le 2014, who found that it helps to read from the end (`reverse`); bidirectional as in Bahdanau,
Cho & Bengio 2015, section 3.2; the bottom layer alone as in Wu et al. 2016, section 3.2.
"""

from collections.abc import Callable, Sequence
from typing import Literal, cast

import torch
from torch import Tensor, nn

from seqloom.cells.lstm import LSTM
from seqloom.contracts import Cell, Encoder
from seqloom.layers.dropout import Dropout
from seqloom.layers.embedding import reading
from seqloom.types import Memory, Padded, State


class Recurrent(Encoder):
    """Layers of cells; with `bidirectional` each layer, or the bottom one, reads both ways, its outputs side by side.

    With `residual`, a layer adds to its input rather than replacing it, from the second on, or from where widths agree.
    """

    def __init__(
        self,
        *,
        vocabulary: int | None = None,
        features: int | None = None,
        embedding_size: int = 256,
        size: int = 256,
        layers: int = 1,
        cell: Callable[..., Cell] = LSTM,
        bidirectional: bool | Literal["bottom"] = False,
        reverse: bool = False,
        residual: bool = False,
        dropout: float = 0.0,
    ):
        super().__init__()
        if layers < 1:
            raise ValueError(f"layers = {layers} must be 1 or more")
        both = {"bottom": 1, True: layers, False: 0}[bidirectional]  # how many layers read both ways
        self.reverse, self.residual = reverse, residual
        self.embedding = reading(vocabulary, features, embedding_size)
        self.dropout = Dropout(dropout)

        widths = [embedding_size, *(2 * size if layer < both else size for layer in range(layers))]
        self.output_size = widths[-1]

        def cells(count: int) -> Sequence[Cell]:
            return cast(Sequence[Cell], nn.ModuleList(cell(input_size=width, size=size) for width in widths[:count]))

        self.forwards = cells(layers)
        self.backwards = cells(both)

    def forward(self, source: Padded, attention: bool = False) -> Memory:
        values = self.dropout(self.embedding(source.values))  # (B, T, embedding_size)
        if self.reverse:
            values = turned(Padded(values, source.lengths))
        final: State = {}
        for layer in range(len(self.forwards)):
            if layer:
                values = self.dropout(values)
            outputs, final[str(layer)] = self.read(layer, Padded(values, source.lengths))
            adds = self.residual and layer and outputs.shape == values.shape
            values = outputs + values if adds else outputs
        summary = final[str(layer)]["hidden"]
        if self.reverse:  # a state stands where its symbol stood
            values = turned(Padded(values, source.lengths))
        return Memory(values, source.lengths, {"summary": summary, "layers": final})

    def read(self, layer: int, inputs: Padded) -> tuple[Tensor, State]:
        """One layer: outputs (B, T, width) and its final state, both directions side by side."""
        rows = inputs.values.shape[0]
        cell = self.forwards[layer]
        outputs, final = cell.run(inputs, cell.start(rows))
        if layer >= len(self.backwards):
            return outputs, final
        cell = self.backwards[layer]  # begins at each sequence's true end
        reverse, last = cell.run(Padded(turned(inputs), inputs.lengths), cell.start(rows))
        outputs = torch.cat([outputs, turned(Padded(reverse, inputs.lengths))], dim=-1)
        return outputs, {name: torch.cat([final[name], last[name]], dim=-1) for name in final}


def turned(inputs: Padded) -> Tensor:
    """Each sequence the other way round within its own length; the padding stays.  (B, T, D)"""
    positions = torch.arange(inputs.values.shape[1], device=inputs.lengths.device)
    order = torch.where(inputs.mask, inputs.lengths[:, None] - 1 - positions, positions)  # (B, T)
    return inputs.values.gather(1, order[:, :, None].expand_as(inputs.values))
