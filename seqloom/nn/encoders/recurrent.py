"""Recurrent encoder: reads the source token by token (or vector by vector), in one direction or both.

Sutskever, Vinyals & Le 2014, who found that it helps to read from the end (`reverse`); bidirectional as in Bahdanau,
Cho & Bengio 2015, section 3.2; the bottom layer alone as in Wu et al. 2016, section 3.2.
"""

from collections.abc import Callable, Sequence
from typing import Literal, cast

import torch
from torch import Tensor, nn

from seqloom.contracts import Cell, Encoder
from seqloom.nn.cells.lstm import LSTM
from seqloom.nn.layers.bridge import without_costs
from seqloom.nn.layers.embedding import input_layer
from seqloom.nn.ops.dropout import Dropout
from seqloom.types import Memory, Padded, State, costs, over_tensors


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
        self.embedding = input_layer(vocabulary, features, embedding_size)
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
            values = reverse_padded(Padded(values, source.lengths))
        start = {str(layer): cell.start(values.shape[0]) for layer, cell in enumerate(self.forwards)}
        steps: list[Tensor] | None = [] if attention and costs(start) else None
        values, final = self.run_layers(Padded(values, source.lengths), start, steps)
        if self.reverse:  # a state stands where its token stood
            values = reverse_padded(Padded(values, source.lengths))
        memory = recurrent_memory(values, source.lengths, final)
        if not steps:
            return memory
        taken = torch.stack(steps).sum(0)  # (B, T, 1)
        return memory.with_extra(steps=reverse_padded(Padded(taken, source.lengths)) if self.reverse else taken)

    @property
    def streams(self) -> bool:
        return not self.reverse and not len(self.backwards)

    def start(self, rows: int) -> State:
        if not self.streams:
            return super().start(rows)
        return {str(layer): cell.start(rows) for layer, cell in enumerate(self.forwards)}

    def extend(self, chunk: Padded, state: State, closed: bool) -> tuple[Memory, State]:
        if not self.streams:
            return super().extend(chunk, state, closed)
        values, state = self.run_layers(Padded(self.dropout(self.embedding(chunk.values)), chunk.lengths), state)
        return recurrent_memory(values, chunk.lengths, state, closed), state

    def run_layers(self, inputs: Padded, state: State, steps: list[Tensor] | None = None) -> tuple[Tensor, State]:
        """All layers: outputs of the top (B, T, width), and the last state of each; asked for steps, those too."""
        values, final = inputs.values, {}
        for layer, cell in enumerate(self.forwards):
            if layer:
                values = self.dropout(values)
            back = self.backwards[layer] if layer < len(self.backwards) else None
            entering = Padded(values, inputs.lengths)
            outputs, final[str(layer)] = run_layer(entering, cell, state[str(layer)], back)
            if steps is not None:
                steps.append(count_steps(entering, cell, state[str(layer)]))
                if back is not None:
                    other = Padded(reverse_padded(entering), inputs.lengths)
                    steps.append(
                        reverse_padded(Padded(count_steps(other, back, back.start(len(values))), inputs.lengths))
                    )
            adds = self.residual and layer and outputs.shape == values.shape
            values = outputs + values if adds else outputs
        return values, final


def recurrent_memory(values: Tensor, lengths: Tensor, layers: State, closed: bool = True) -> Memory:
    """The memory of a recurrent encoder. What its cells have cost is none of the states that a decoder may copy."""
    final = {number: without_costs(state) for number, state in layers.items()}
    spent = costs(layers)
    summary = final[str(len(final) - 1)]["hidden"]
    return Memory(
        values, lengths, {"summary": summary, "layers": final}, {"cost": spent} if spent else {}, closed=closed
    )


def count_steps(inputs: Padded, cell: Cell, state: State) -> Tensor:
    """How often a cell that decides so itself steps at each input.  (B, T, 1)"""
    sums = [costs(state)["steps"]]
    for projected in cell.project(inputs.values).unbind(1):
        _, state = cell(projected, state)
        sums.append(costs(state)["steps"])
    return torch.stack(sums, dim=1).diff(dim=1)[:, :, None]


def run_layer(inputs: Padded, cell: Cell, state: State, back: Cell | None = None) -> tuple[Tensor, State]:
    """Outputs (B, T, width) of a cell from a state on, and its last state; with those of a cell that reads back."""
    rows, width, _ = inputs.values.shape
    if not width:  # no kernel runs on nothing
        return inputs.values.new_zeros(rows, 0, cell.size), state
    outputs, final = cell.run(inputs, state)
    if back is None:
        return outputs, final
    reverse, last = back.run(
        Padded(reverse_padded(inputs), inputs.lengths), back.start(rows)
    )  # begins at each true end
    outputs = torch.cat([outputs, reverse_padded(Padded(reverse, inputs.lengths))], dim=-1)
    joined: State = {name: torch.cat([final[name], last[name]], dim=-1) for name in without_costs(final)}
    if "cost" in final:
        joined["cost"] = over_tensors(torch.add, final["cost"], last["cost"])
    return outputs, joined


def reverse_padded(inputs: Padded) -> Tensor:
    """Each sequence the other way round within its own length; the padding stays.  (B, T, D)"""
    positions = torch.arange(inputs.values.shape[1], device=inputs.lengths.device)
    order = torch.where(inputs.mask, inputs.lengths[:, None] - 1 - positions, positions)  # (B, T)
    return inputs.values.gather(1, order[:, :, None].expand_as(inputs.values))
