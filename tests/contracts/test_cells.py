"""What holds for every cell, found or yet to be written."""

import pytest
import torch

from seqloom.types import Padded, flatten, nest, select
from tests.building import cases

rows, length = 4, 5
lengths = torch.tensor([5, 2, 1, 4])


@pytest.fixture(params=cases("cells"))
def cell(request):
    return request.param()


@pytest.fixture
def inputs(cell):
    return Padded(torch.randn(rows, length, cell.input_size, dtype=torch.float64), lengths)


def unrolled(cell, values, state):
    outputs = []
    for projected in cell.project(values).unbind(1):
        output, state = cell(projected, state)
        outputs.append(output)
    return torch.stack(outputs, 1), state


def test_running_is_stepping_and_the_state_is_that_at_each_rows_own_end(cell, inputs):
    outputs, state = cell.run(inputs, cell.start(rows))
    for row in range(rows):
        ours, last = unrolled(cell, inputs.values[row : row + 1, : lengths[row]], cell.start(1))
        torch.testing.assert_close(outputs[row : row + 1, : lengths[row]], ours)
        torch.testing.assert_close(select(state, torch.tensor([row])), last)


def test_rows_do_not_see_each_other(cell, inputs):
    order = torch.tensor([2, 0, 3, 1])
    _, state = cell.run(inputs, cell.start(rows))
    projected = cell.project(inputs.values[:, 0])
    output, after = cell(projected, state)
    permuted, permuted_after = cell(projected[order], select(state, order))
    torch.testing.assert_close(permuted, output[order])
    torch.testing.assert_close(permuted_after, select(after, order))


def test_gradients_are_right(cell):
    state = flatten(cell.start(2))
    inputs = torch.randn(2, cell.input_size, dtype=torch.float64, requires_grad=True)
    values = [torch.randn_like(value, requires_grad=True) for value in state.values()]

    def step(inputs, *values):
        output, after = cell(cell.project(inputs), nest(dict(zip(state, values))))
        return output, *flatten(after).values()

    assert torch.autograd.gradcheck(step, (inputs, *values))


def test_every_parameter_gets_a_gradient(cell, inputs):
    cell.run(inputs, cell.start(rows))[0].pow(2).sum().backward()
    assert [name for name, value in cell.named_parameters() if value.grad is None or not value.grad.any()] == []
