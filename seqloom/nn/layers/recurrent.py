"""A stack of recurrent cells: each layer reads the outputs of the one below."""

from collections.abc import Callable, Sequence
from typing import cast

from torch import Tensor, nn

from seqloom.contracts import Cell
from seqloom.nn.layers.experts import ExpertsBetween, Routing
from seqloom.nn.ops.dropout import Dropout
from seqloom.nn.ops.packing import Packing
from seqloom.types import Padded, State

EXPERTS = "experts"  # of a layer's state: {"cost": that of the experts before it}
Routings = dict[str, Routing]  # "layers.1" -> which experts were used before that layer


class RecurrentStack(nn.Module):
    """State: {"0": state of the bottom cell, "1": ...}.

    With `residual`, every layer but the first adds its input to its output (Wu et al. 2016). With `experts` there is a
    mixture of experts before every layer but the first; its costs are in the state of that layer, under "experts".
    """

    def __init__(
        self,
        *,
        cell: Callable[..., Cell],
        input_size: int,
        size: int,
        layers: int = 1,
        residual: bool = False,
        dropout: float = 0.0,
        experts: int = 0,
        active_experts: int = 2,
        expert_hidden: int = 512,
    ):
        super().__init__()
        if layers < 1:
            raise ValueError(f"layers = {layers} must be 1 or more")
        widths = [input_size] + [size] * (layers - 1)
        self.cells = cast(Sequence[Cell], nn.ModuleList(cell(input_size=width, size=size) for width in widths))
        self.residual = residual
        self.dropout = Dropout(dropout)
        self.experts = experts_between(widths[1:] if experts else [], experts, active_experts, expert_hidden, dropout)

    def start(self, rows: int) -> State:
        return start_layers(self.cells, self.experts, rows)

    def step(self, inputs: Tensor, state: State, routings: Routings | None = None) -> tuple[Tensor, State]:
        """(rows, I) -> (rows, size); `routings` collects which experts were used before which layer."""
        after: State = {}
        for layer, cell in enumerate(self.cells):
            number = str(layer)
            spent: State = {}
            if layer and self.experts:
                packing = Packing.unpadded(len(inputs), 1, inputs.device)
                inputs, spent = mix_before(layer, self.experts, inputs[:, None], packing, state, routings)
                inputs = inputs[:, 0]
            outputs, own = cell(cell.project(inputs), without_experts(state[number]))
            after[number] = {**own, **spent}
            inputs = self.join(layer, inputs, outputs)
        return inputs, after

    def run(self, inputs: Padded, state: State, routings: Routings | None = None) -> tuple[Tensor, State]:
        """(rows, T, I) -> (rows, T, size)"""
        values = inputs.values
        packing = Packing(inputs.mask) if self.experts else None
        after: State = {}
        for layer, cell in enumerate(self.cells):
            number = str(layer)
            spent: State = {}
            if layer and packing is not None:
                values, spent = mix_before(layer, self.experts, values, packing, state, routings)
            outputs, own = cell.run(Padded(values, inputs.lengths), without_experts(state[number]))
            after[number] = {**own, **spent}
            values = self.join(layer, values, outputs)
        return values, after

    def join(self, layer: int, inputs: Tensor, outputs: Tensor) -> Tensor:
        """The input of the next layer."""
        if self.residual and layer:
            outputs = outputs + inputs
        return self.dropout(outputs) if layer + 1 < len(self.cells) else outputs


def experts_between(
    widths: Sequence[int], experts: int, active_experts: int, hidden: int, dropout: float
) -> Sequence[ExpertsBetween]:
    """Mixtures of experts for the inputs, this wide, of all layers but the first."""
    made = (
        ExpertsBetween(size=width, experts=experts, active_experts=active_experts, hidden=hidden, dropout=dropout)
        for width in widths
    )
    return cast(Sequence[ExpertsBetween], nn.ModuleList(made))


def start_layers(cells: Sequence[Cell], experts: Sequence[ExpertsBetween], rows: int) -> State:
    """The state of each layer before the first step."""
    state: State = {str(layer): cell.start(rows) for layer, cell in enumerate(cells)}
    for layer, mixture in enumerate(experts, start=1):
        state[str(layer)] = {**state[str(layer)], EXPERTS: mixture.start(rows)}
    return state


def mix_before(
    layer: int,
    experts: Sequence[ExpertsBetween],
    values: Tensor,
    packing: Packing,
    state: State,
    routings: Routings | None,
) -> tuple[Tensor, State]:
    """The input of a layer after its experts, and their entry in the layer's state.  (rows, T, size)"""
    values, spent, routing = experts[layer - 1](values, packing, state[str(layer)][EXPERTS])
    if routings is not None:
        routings[f"layers.{layer}"] = routing
    return values, {EXPERTS: spent}


def without_experts(state: State) -> State:
    """The part of a layer's state that is its cell's."""
    return {name: value for name, value in state.items() if name != EXPERTS}
