"""A stack of recurrent cells: each layer reads the outputs of the one below."""

from collections.abc import Callable, Sequence
from typing import cast

from torch import Tensor, nn

from seqloom.contracts import Cell
from seqloom.nn.ops.dropout import Dropout
from seqloom.types import Padded, State


class RecurrentStack(nn.Module):
    """State: {"0": state of the bottom cell, "1": ...}.

    With `residual`, every layer but the first adds its input to its output (Wu et al. 2016).
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
    ):
        super().__init__()
        if layers < 1:
            raise ValueError(f"layers = {layers} must be 1 or more")
        widths = [input_size] + [size] * (layers - 1)
        self.cells = cast(Sequence[Cell], nn.ModuleList(cell(input_size=width, size=size) for width in widths))
        self.residual = residual
        self.dropout = Dropout(dropout)

    def start(self, rows: int) -> State:
        return {str(layer): cell.start(rows) for layer, cell in enumerate(self.cells)}

    def step(self, inputs: Tensor, state: State) -> tuple[Tensor, State]:
        """(rows, I) -> (rows, size)"""
        after: State = {}
        for layer, cell in enumerate(self.cells):
            outputs, after[str(layer)] = cell(cell.project(inputs), state[str(layer)])
            inputs = self.join(layer, inputs, outputs)
        return inputs, after

    def run(self, inputs: Padded, state: State) -> tuple[Tensor, State]:
        """(rows, T, I) -> (rows, T, size)"""
        values = inputs.values
        after: State = {}
        for layer, cell in enumerate(self.cells):
            outputs, after[str(layer)] = cell.run(Padded(values, inputs.lengths), state[str(layer)])
            values = self.join(layer, values, outputs)
        return values, after

    def join(self, layer: int, inputs: Tensor, outputs: Tensor) -> Tensor:
        """The input of the next layer."""
        if self.residual and layer:
            outputs = outputs + inputs
        return self.dropout(outputs) if layer + 1 < len(self.cells) else outputs
