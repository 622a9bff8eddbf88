"""A cell that decides how often it steps before it reads on: adaptive computation time. Graves 2016.

Around any cell. Its first step on an input sees a flag of 1 beside it, the others 0; they begin at the state carried
over, and carried on is the mean of all states, weighted by how likely each was the last (seqloom/nn/ops/halting.py).
"""

from collections.abc import Callable

import torch
from torch import Tensor

from seqloom.contracts import Cell
from seqloom.nn.cells.lstm import LSTM
from seqloom.nn.ops.halting import Halting
from seqloom.types import State


class Adaptive(Cell):
    """Its state is that of the cell, and "cost": {"ponder": N + R, "steps": N}, (rows,) each, summed over all inputs.

    Only ponder has a gradient. At most `most` steps an input; epsilon lets one be enough.
    """

    def __init__(
        self, *, input_size: int, size: int, cell: Callable[..., Cell] = LSTM, most: int = 10, epsilon: float = 0.01
    ):
        super().__init__(input_size=input_size, size=size)
        self.cell = cell(input_size=input_size + 1, size=size)
        if isinstance(self.cell, Adaptive):
            raise ValueError("an adaptive cell goes around one that is not: choose another cell.type")
        self.halting = Halting(size=size, most=most, epsilon=epsilon)

    def start(self, rows: int) -> State:
        nothing = self.halting.unit.weight.new_zeros(rows)
        return {**self.cell.start(rows), "cost": {"ponder": nothing, "steps": nothing}}

    def project(self, inputs: Tensor) -> Tensor:
        flag = torch.ones_like(inputs[..., :1])
        both = [self.cell.project(torch.cat([inputs, each], dim=-1)) for each in (flag, flag - 1)]
        return torch.cat(both, dim=-1)  # (..., 2 * G): of the first step, of all others

    def forward(self, projected: Tensor, state: State) -> tuple[Tensor, State]:
        first, others = projected.chunk(2, dim=-1)
        inner = {name: value for name, value in state.items() if name != "cost"}
        found = self.halting(lambda number, now, _: self.cell(others if number else first, now), inner, len(projected))
        spent = {"ponder": found.ponder, "steps": found.steps}
        cost = {name: state["cost"][name] + more for name, more in spent.items()}
        return found.output, {**found.state, "cost": cost}
