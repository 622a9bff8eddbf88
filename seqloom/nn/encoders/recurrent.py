"""Recurrent encoder: reads the source token by token (or vector by vector), in one direction or both.

Sutskever, Vinyals & Le 2014, who found that reversing the source helps (`reverse`); bidirectional as in Bahdanau, Cho &
Bengio 2015, section 3.2; only the bottom layer bidirectional as in Wu et al. 2016, section 3.2. With `experts` there is
a mixture of experts before every layer but the first (Shazeer et al. 2017, seqloom/nn/layers/experts.py).
"""

from collections.abc import Callable, Sequence
from typing import Literal, cast

import torch
from torch import Tensor, nn

from seqloom.contracts import Cell, Encoder
from seqloom.nn.cells.lstm import LSTM
from seqloom.nn.layers.bridge import without_costs
from seqloom.nn.layers.embedding import input_layer
from seqloom.nn.layers.experts import expert_maps
from seqloom.nn.layers.recurrent import Routings, experts_between, mix_before, start_layers, without_experts
from seqloom.nn.ops.dropout import Dropout
from seqloom.nn.ops.packing import Packing
from seqloom.nn.ops.reversal import reverse_padded
from seqloom.types import COST, Memory, Padded, State, costs, over_tensors, sum_costs


class Recurrent(Encoder):
    """Layers of cells; with `bidirectional` all layers, or the bottom one, read both ways and concatenate the outputs.

    With `residual`, every layer but the first adds its input to its output, if they are equally wide.
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
        experts: int = 0,
        active_experts: int = 2,
        expert_hidden: int = 512,
    ):
        super().__init__()
        if layers < 1:
            raise ValueError(f"layers = {layers} must be 1 or more")
        if experts and layers < 2:
            raise ValueError("experts stand between layers: set layers = 2 or more")
        both = {"bottom": 1, True: layers, False: 0}[bidirectional]  # the number of bidirectional layers
        self.reverse, self.residual = reverse, residual
        self.embedding = input_layer(vocabulary, features, embedding_size)
        self.dropout = Dropout(dropout)

        widths = [embedding_size, *(2 * size if layer < both else size for layer in range(layers))]
        self.output_size = widths[-1]

        def cells(count: int) -> Sequence[Cell]:
            return cast(Sequence[Cell], nn.ModuleList(cell(input_size=width, size=size) for width in widths[:count]))

        self.forwards = cells(layers)
        self.backwards = cells(both)
        between = widths[1:-1] if experts else []
        self.experts = experts_between(between, experts, active_experts, expert_hidden, dropout)

    def forward(self, source: Padded, attention: bool = False) -> Memory:
        values = self.dropout(self.embedding(source.values))  # (B, T, embedding_size)
        if self.reverse:
            values = reverse_padded(Padded(values, source.lengths))
        start = start_layers(self.forwards, self.experts, values.shape[0])
        steps: list[Tensor] | None = [] if attention and sum_costs(costs(start)) else None
        routings: Routings = {}
        values, final = self.run_layers(Padded(values, source.lengths), start, steps, routings)

        def in_order(values: Tensor) -> Tensor:
            """In the order of the tokens.  (B, T, ...)"""
            return reverse_padded(Padded(values, source.lengths)) if self.reverse else values

        memory = recurrent_memory(in_order(values), source.lengths, final)
        if steps:
            memory = memory.with_extra(steps=in_order(torch.stack(steps).sum(0)))  # (B, T, 1)
        if attention and routings:
            memory = memory.with_extra(experts=over_tensors(in_order, expert_maps(routings, Packing(source.mask))))
        return memory

    @property
    def streams(self) -> bool:
        return not self.reverse and not len(self.backwards)

    def start(self, rows: int) -> State:
        if not self.streams:
            return super().start(rows)
        return start_layers(self.forwards, self.experts, rows)

    def extend(self, chunk: Padded, state: State, closed: bool) -> tuple[Memory, State]:
        if not self.streams:
            return super().extend(chunk, state, closed)
        values, state = self.run_layers(Padded(self.dropout(self.embedding(chunk.values)), chunk.lengths), state)
        return recurrent_memory(values, chunk.lengths, state, closed), state

    def run_layers(
        self, inputs: Padded, state: State, steps: list[Tensor] | None = None, routings: Routings | None = None
    ) -> tuple[Tensor, State]:
        """Run all layers: outputs of the top one (B, T, width), and the final state of each.

        `steps` collects the steps of adaptive cells, `routings` which experts were used.
        """
        values, final = inputs.values, {}
        packing = Packing(inputs.mask) if self.experts else None
        for layer, cell in enumerate(self.forwards):
            number = str(layer)
            spent: State = {}
            if layer:
                values = self.dropout(values)
                if packing is not None:
                    values, spent = mix_before(layer, self.experts, values, packing, state, routings)
            back = self.backwards[layer] if layer < len(self.backwards) else None
            layer_inputs, before = Padded(values, inputs.lengths), without_experts(state[number])
            outputs, own = run_layer(layer_inputs, cell, before, back)
            final[number] = {**own, **spent}
            if steps is not None:
                steps.append(count_steps(layer_inputs, cell, before))
                if back is not None:
                    other = Padded(reverse_padded(layer_inputs), inputs.lengths)
                    steps.append(
                        reverse_padded(Padded(count_steps(other, back, back.start(len(values))), inputs.lengths))
                    )
            adds = self.residual and layer and outputs.shape == values.shape
            values = outputs + values if adds else outputs
        return values, final


def recurrent_memory(values: Tensor, lengths: Tensor, layers: State, closed: bool = True) -> Memory:
    """The memory of a recurrent encoder. Costs of layers go to extra, not to the states that a decoder may copy."""
    final = {number: without_costs(state) for number, state in layers.items()}
    spent = costs({"layers": layers})
    summary = final[str(len(final) - 1)]["hidden"]
    return Memory(values, lengths, {"summary": summary, "layers": final}, {COST: spent} if spent else {}, closed=closed)


def count_steps(inputs: Padded, cell: Cell, state: State) -> Tensor:
    """How many steps an adaptive cell takes at each input.  (B, T, 1)"""
    sums = [sum_costs(costs(state))["steps"]]
    for projected in cell.project(inputs.values).unbind(1):
        _, state = cell(projected, state)
        sums.append(sum_costs(costs(state))["steps"])
    return torch.stack(sums, dim=1).diff(dim=1)[:, :, None]


def run_layer(inputs: Padded, cell: Cell, state: State, back: Cell | None = None) -> tuple[Tensor, State]:
    """Outputs (B, T, width) and final state of a cell, concatenated with those of a backward cell `back` if given."""
    rows, width, _ = inputs.values.shape
    if not width:  # kernels refuse empty sequences
        return inputs.values.new_zeros(rows, 0, cell.size), state
    outputs, final = cell.run(inputs, state)
    if back is None:
        return outputs, final
    reverse, last = back.run(
        Padded(reverse_padded(inputs), inputs.lengths), back.start(rows)
    )  # begins at each true end
    outputs = torch.cat([outputs, reverse_padded(Padded(reverse, inputs.lengths))], dim=-1)
    return outputs, join_states(final, last)


def join_states(first: State, second: State) -> State:
    """The states of two cells that read the same source: vectors concatenated, costs added."""
    joined: State = {name: torch.cat([first[name], second[name]], dim=-1) for name in without_costs(first)}
    if "cost" in first:
        joined["cost"] = over_tensors(torch.add, first["cost"], second["cost"])
    return joined
