"""What holds for every cell."""

from __future__ import annotations

import torch
from torch import Tensor

from seqloom.contracts import Cell
from seqloom.testing.claims import ContractError, require, require_gradients, require_same
from seqloom.types import Padded, State, flatten, nest, select

ROWS, LENGTHS = 4, torch.tensor([5, 2, 1, 4])


def rows_do_not_see_each_other(cell: Cell) -> None:
    inputs, order = _inputs(cell), torch.tensor([2, 0, 3, 1])
    _, state = cell.run(inputs, cell.start(ROWS))
    values = inputs.values[:, 0]
    output, after = cell(cell.project(values), state)
    for row in range(ROWS):
        one = torch.tensor([row])
        alone, alone_after = cell(cell.project(values[one]), select(state, one))
        wrong = f"of row {row} depends on the other rows: keep to operations within a row"
        require_same(alone, output[one], f"the output {wrong}")
        require_same(alone_after, select(after, one), f"the state {wrong}")
    permuted, permuted_after = cell(cell.project(values[order]), select(state, order))
    require_same(permuted, output[order], "permuting the rows does more to the output than permuting its rows")
    require_same(permuted_after, select(after, order), "permuting the rows does more to the state than permuting it")


def running_is_stepping_and_the_state_is_that_at_the_end_of_each_row(cell: Cell) -> None:
    inputs = _inputs(cell)
    outputs, state = cell.run(inputs, cell.start(ROWS))
    for row, length in enumerate(LENGTHS):
        ours, last = _unrolled(cell, inputs.values[row : row + 1, :length], cell.start(1))
        wrong = f"row {row}: run() gives other outputs than {length} steps of forward()"
        require_same(outputs[row : row + 1, :length], ours, wrong)
        wrong = f"row {row}: the state after run() is not that after its own {length} inputs"
        require_same(select(state, torch.tensor([row])), last, wrong)


def gradients_are_right(cell: Cell) -> None:
    state = flatten(cell.start(2))
    inputs = torch.randn(2, cell.input_size, dtype=torch.float64, requires_grad=True)
    values = [torch.randn_like(value, requires_grad=True) for value in state.values()]

    def step(inputs: Tensor, *values: Tensor) -> tuple[Tensor, ...]:
        output, after = cell(cell.project(inputs), nest(dict(zip(state, values))))
        return output, *flatten(after).values()

    try:
        require(torch.autograd.gradcheck(step, (inputs, *values)), "a gradient differs from finite differences")
    except RuntimeError as error:
        line = " ".join(str(error).split())[:160]
        raise ContractError(f"the gradient of a step differs from finite differences: {line}") from None


def every_parameter_gets_a_gradient(cell: Cell) -> None:
    cell.run(_inputs(cell), cell.start(ROWS))[0].pow(2).sum().backward()
    require_gradients(cell)


def _inputs(cell: Cell) -> Padded:
    return Padded(torch.randn(ROWS, int(LENGTHS.max()), cell.input_size, dtype=torch.float64), LENGTHS)


def _unrolled(cell: Cell, values: Tensor, state: State) -> tuple[Tensor, State]:
    outputs = []
    for projected in cell.project(values).unbind(1):
        output, state = cell(projected, state)
        outputs.append(output)
    return torch.stack(outputs, 1), state
