"""Recurrent encoder: reads the source symbol by symbol, in one direction or both.

Sutskever, Vinyals & Le 2014; bidirectional as in Bahdanau, Cho & Bengio 2015, section 3.2.
"""

from collections.abc import Callable, Sequence
from typing import cast

import torch
from torch import Tensor, nn

from seqloom.cells.lstm import LSTM
from seqloom.contracts import Cell, Encoder
from seqloom.types import Memory, Padded, State


class Recurrent(Encoder):
    """Layers of cells; with `bidirectional` each layer reads both ways and says both outputs side by side."""

    def __init__(
        self,
        *,
        vocabulary: int,
        embedding_size: int = 256,
        size: int = 256,
        layers: int = 1,
        cell: Callable[..., Cell] = LSTM,
        bidirectional: bool = False,
        residual: bool = False,
        dropout: float = 0.0,
    ):
        super().__init__()
        directions = 2 if bidirectional else 1
        self.output_size = directions * size
        self.bidirectional, self.residual = bidirectional, residual
        self.embedding = nn.Embedding(vocabulary, embedding_size)
        self.dropout = nn.Dropout(dropout)

        def cells(count: int) -> Sequence[Cell]:
            widths = [embedding_size] + [self.output_size] * (layers - 1)
            return cast(Sequence[Cell], nn.ModuleList(cell(input_size=width, size=size) for width in widths[:count]))

        self.forwards = cells(layers)
        self.backwards = cells(layers if bidirectional else 0)

    def forward(self, source: Padded, attention: bool = False) -> Memory:
        values = self.dropout(self.embedding(source.values))  # (B, T, embedding_size)
        final: State = {}
        for layer in range(len(self.forwards)):
            if layer:
                values = self.dropout(values)
            outputs, final[str(layer)] = self.read(layer, Padded(values, source.lengths))
            values = outputs + values if self.residual and layer else outputs
        return Memory(values, source.lengths, {"summary": final[str(layer)]["hidden"], "layers": final})

    def read(self, layer: int, inputs: Padded) -> tuple[Tensor, State]:
        """One layer: outputs (B, T, output_size) and its final state, both directions side by side."""
        rows = inputs.values.shape[0]
        cell = self.forwards[layer]
        outputs, final = cell.run(inputs, cell.start(rows))
        if not self.bidirectional:
            return outputs, final
        cell = self.backwards[layer]
        order = reversal(inputs)  # the backward direction begins at each sequence's true end
        reverse, last = cell.run(Padded(reorder(inputs.values, order), inputs.lengths), cell.start(rows))
        outputs = torch.cat([outputs, reorder(reverse, order)], dim=-1)
        return outputs, {name: torch.cat([final[name], last[name]], dim=-1) for name in final}


def reversal(inputs: Padded) -> Tensor:
    """Positions that turn each sequence round within its own length and leave the padding.  (B, T)"""
    positions = torch.arange(inputs.values.shape[1], device=inputs.lengths.device)
    return torch.where(inputs.mask, inputs.lengths[:, None] - 1 - positions, positions)


def reorder(values: Tensor, order: Tensor) -> Tensor:
    """(B, T, D) with position t taken from order[:, t]."""
    return values.gather(1, order[:, :, None].expand(-1, -1, values.shape[2]))
