"""Adaptive computation time: a cell that decides how many steps it takes per input. Graves 2016.

Wraps any cell. A flag is appended to the input: 1 at the first step, 0 at the others. The next input starts from the
mean of the states of all steps, weighted by their halting probabilities (seqloom/nn/ops/halting.py).
"""

from collections.abc import Callable

import torch
from torch import Tensor

from seqloom.contracts import Cell
from seqloom.nn.cells.lstm import LSTM
from seqloom.nn.ops.halting import Halting
from seqloom.types import State


class Adaptive(Cell):
    """State: the inner cell's, and "cost": {"ponder": N + R, "steps": N}, (rows,) each, summed over all inputs.

    Only ponder has a gradient. `most` limits the steps per input; with `epsilon` above 0 one step can be enough.
    """

    def __init__(
        self, *, input_size: int, size: int, cell: Callable[..., Cell] = LSTM, most: int = 10, epsilon: float = 0.01
    ):
        super().__init__(input_size=input_size, size=size)
        self.cell = cell(input_size=input_size + 1, size=size)
        if isinstance(self.cell, Adaptive):
            raise ValueError("an adaptive cell cannot wrap another adaptive cell: choose another cell.type")
        self.halting = Halting(size=size, most=most, epsilon=epsilon)

    def start(self, rows: int) -> State:
        zeros = self.halting.unit.weight.new_zeros(rows)
        return {**self.cell.start(rows), "cost": {"ponder": zeros, "steps": zeros}}

    def project(self, inputs: Tensor) -> Tensor:
        flag = torch.ones_like(inputs[..., :1])
        both = [self.cell.project(torch.cat([inputs, each], dim=-1)) for each in (flag, flag - 1)]
        return torch.cat(both, dim=-1)  # (..., 2 * G): for the first step, for all others

    def forward(self, projected: Tensor, state: State) -> tuple[Tensor, State]:
        first, others = projected.chunk(2, dim=-1)
        inner = {name: value for name, value in state.items() if name != "cost"}
        result = self.halting(lambda number, now, _: self.cell(others if number else first, now), inner, len(projected))
        spent = {"ponder": result.ponder, "steps": result.steps}
        cost = {name: state["cost"][name] + more for name, more in spent.items()}
        return result.output, {**result.state, "cost": cost}
