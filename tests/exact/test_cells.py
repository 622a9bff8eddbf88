"""Cells against torch's own, against the equations of the papers, and against their statements about gradients."""

from functools import partial

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from seqloom.contracts import Cell
from seqloom.nn.cells.elman import Elman
from seqloom.nn.cells.gru import GRU
from seqloom.nn.cells.lstm import LSTM
from seqloom.nn.cells.mut import MUT
from seqloom.nn.encoders.recurrent import Recurrent
from seqloom.nn.layers.bridge import without_costs
from seqloom.types import Padded, flatten, nest, over_tensors, select
from tests.building import build, cases, source

SIZE, WIDTH, ROWS, TIME = 5, 3, 4, 6
LENGTHS = torch.tensor([6, 2, 1, 4])


@pytest.fixture
def inputs():
    torch.manual_seed(2)
    return torch.randn(ROWS, TIME, WIDTH, dtype=torch.float64)


def made(part, **settings):
    return build(part, input_size=WIDTH, size=SIZE, **settings)


def random_state(cell):
    return over_tensors(torch.randn_like, cell.start(ROWS))


def stepped(cell, values, state):
    outputs = []
    for projected in cell.project(values).unbind(1):
        output, state = cell(projected, state)
        outputs.append(output)
    return torch.stack(outputs, dim=1), state


def copied(reference, cell):
    """A reference module with the weights of a cell, whose names differ by "_l0" only."""
    own = dict(cell.kernel.named_parameters())
    renamed = {name: own[name if name in own else f"{name}_l0"] for name, _ in reference.named_parameters()}
    reference.double().load_state_dict(renamed)
    return reference


# -- torch's modules


def test_lstm_steps_equal_torchs(inputs):
    cell = made(LSTM)
    state = random_state(cell)
    outputs, after = stepped(cell, inputs, state)

    sequence, (hidden, memory) = copied(nn.LSTM(WIDTH, SIZE, batch_first=True), cell)(
        inputs, (state["hidden"][None], state["cell"][None])
    )
    torch.testing.assert_close(outputs, sequence)
    torch.testing.assert_close(after, {"hidden": hidden[0], "cell": memory[0]})

    hidden, memory = copied(nn.LSTMCell(WIDTH, SIZE), cell)(inputs[:, 0], (state["hidden"], state["cell"]))
    _, once = cell(cell.project(inputs[:, 0]), state)
    torch.testing.assert_close(once, {"hidden": hidden, "cell": memory})


def test_elman_steps_equal_torchs(inputs):
    cell = made(Elman)
    state = random_state(cell)
    outputs, after = stepped(cell, inputs, state)
    sequence, hidden = copied(nn.RNN(WIDTH, SIZE, batch_first=True), cell)(inputs, state["hidden"][None])
    torch.testing.assert_close(outputs, sequence)
    torch.testing.assert_close(after["hidden"], hidden[0])

    once, _ = cell(cell.project(inputs[:, 0]), state)
    torch.testing.assert_close(once, copied(nn.RNNCell(WIDTH, SIZE), cell)(inputs[:, 0], state["hidden"]))
    logistic = made(Elman, activation="sigmoid")  # the same weights: the seed is the same
    torch.testing.assert_close(logistic(logistic.project(inputs[:, 0]), state)[0], torch.sigmoid(torch.atanh(once)))


@pytest.mark.parametrize("gate", ["forget", "input", "output"])
def test_an_lstm_without_a_gate_equals_one_whose_gate_is_always_open(inputs, gate):
    cell, whole = made(LSTM, without=gate), made(LSTM)
    index = ["input", "forget", "candidate", "output"].index(gate)
    kept = [row for row in range(4 * SIZE) if row // SIZE != index]
    assert (
        sum(value.numel() for value in cell.parameters()) * 4 == sum(value.numel() for value in whole.parameters()) * 3
    )
    with torch.no_grad():
        for name, value in whole.kernel.named_parameters():
            value.zero_()
            value[kept] = cell.kernel[name]
        whole.kernel.bias_ih_l0[index * SIZE : (index + 1) * SIZE] = 1000.0  # the sigmoid is 1 to the last bit
    state = random_state(cell)
    torch.testing.assert_close(stepped(cell, inputs, state), stepped(whole, inputs, state))


@pytest.mark.parametrize("width", [SIZE, WIDTH])
@pytest.mark.parametrize("variant", [1, 2, 3])
def test_mutations_follow_the_equations_of_the_paper(variant, width):
    cell = build(MUT, input_size=width, size=SIZE, variant=variant)
    value, before = torch.randn(width, dtype=torch.float64), torch.randn(SIZE, dtype=torch.float64)
    own = {name: parameter.detach() for name, parameter in cell.named_parameters()}
    x = value
    if variant != 3 and width != SIZE:
        x = own["match.weight"] @ value + own["match.bias"]
    update = own["update.weight"] @ x + own["update.bias"]
    if variant == 1:
        reset, candidate = own["reset.weight"] @ x + own["reset.bias"], torch.tanh(x) + own["candidate.bias"]
    elif variant == 2:
        update = update + own["recurrent_update.weight"] @ before
        reset, candidate = x + own["reset.bias"], own["candidate.weight"] @ x + own["candidate.bias"]
    else:
        update = update + own["recurrent_update.weight"] @ torch.tanh(before)
        reset = own["reset.weight"] @ x + own["reset.bias"]
        candidate = own["candidate.weight"] @ x + own["candidate.bias"]
    z, r = torch.sigmoid(update), torch.sigmoid(reset + own["recurrent_reset.weight"] @ before)
    expected = torch.tanh(own["recurrent_candidate.weight"] @ (r * before) + candidate) * z + before * (1 - z)
    hidden, _ = cell(cell.project(value[None]), {"hidden": before[None]})
    torch.testing.assert_close(hidden[0], expected)


def test_gru_steps_with_the_reset_after_equal_torchs(inputs):
    cell = made(GRU, reset="after")
    state = random_state(cell)
    outputs, after = stepped(cell, inputs, state)

    sequence, hidden = copied(nn.GRU(WIDTH, SIZE, batch_first=True), cell)(inputs, state["hidden"][None])
    torch.testing.assert_close(outputs, sequence)
    torch.testing.assert_close(after["hidden"], hidden[0])

    once, _ = cell(cell.project(inputs[:, 0]), state)
    torch.testing.assert_close(once, copied(nn.GRUCell(WIDTH, SIZE), cell)(inputs[:, 0], state["hidden"]))


# -- the equations of the papers


def test_an_lstm_follows_its_equations_unit_by_unit(inputs):
    cell = made(LSTM)
    state = random_state(cell)
    _, after = cell(cell.project(inputs[:, 0]), state)
    kernel = cell.kernel
    for row in range(ROWS):
        gates = kernel.weight_ih_l0 @ inputs[row, 0] + kernel.weight_hh_l0 @ state["hidden"][row]
        gates = gates + kernel.bias_ih_l0 + kernel.bias_hh_l0
        for unit in range(SIZE):
            enter, forget, candidate, leave = (gates[gate * SIZE + unit] for gate in range(4))
            memory = forget.sigmoid() * state["cell"][row, unit] + enter.sigmoid() * candidate.tanh()
            torch.testing.assert_close(after["cell"][row, unit], memory)
            torch.testing.assert_close(after["hidden"][row, unit], leave.sigmoid() * memory.tanh())


def test_a_gru_with_the_reset_before_follows_the_equations_of_cho(inputs):
    cell = made(GRU, reset="before")
    hidden = torch.randn(ROWS, SIZE, dtype=torch.float64)
    outputs, _ = stepped(cell, inputs, {"hidden": hidden})
    from_input, from_hidden = (weights.split(SIZE) for weights in (cell.kernel.weight_ih_l0, cell.kernel.weight_hh_l0))
    biases = (cell.kernel.bias_ih_l0 + cell.kernel.bias_hh_l0).split(SIZE)  # outside the product the two biases add up
    for time in range(TIME):
        new = []
        for value, before in zip(inputs[:, time], hidden):
            reset, update = (
                torch.sigmoid(from_input[gate] @ value + from_hidden[gate] @ before + biases[gate]) for gate in (0, 1)
            )
            candidate = torch.tanh(from_input[2] @ value + from_hidden[2] @ (reset * before) + biases[2])
            new.append((1 - update) * before + update * candidate)
        hidden = torch.stack(new)
        torch.testing.assert_close(outputs[:, time], hidden)


def with_negated_update(cell):
    """torch's GRU with the weights of ours, its update gate 1 - z."""
    reference = copied(nn.GRU(WIDTH, SIZE, batch_first=True), cell)
    for parameter in reference.parameters():
        parameter[SIZE : 2 * SIZE] *= -1
    return reference


@torch.no_grad()
def test_with_the_reset_gate_open_both_grus_agree_with_the_update_gate_negated(inputs):
    cell = made(GRU, reset="before")
    start = torch.randn(ROWS, SIZE, dtype=torch.float64)

    def difference():
        outputs, _ = stepped(cell, inputs, {"hidden": start})
        return float((outputs - with_negated_update(cell)(inputs, start[None])[0]).abs().max())

    assert difference() > 1e-3  # with a working gate it matters where it acts
    cell.kernel.bias_ih_l0[:SIZE] = 100.0
    assert difference() < 1e-12


# -- biases and gradients


@pytest.mark.parametrize("value", [1.0, 0.0, 2.5])
def test_the_forget_bias_is_in_one_of_the_two_biases(value):
    kernel = LSTM(input_size=WIDTH, size=SIZE, forget_bias=value).kernel
    forget = slice(SIZE, 2 * SIZE)
    assert (kernel.bias_ih_l0[forget] == value).all()
    assert not kernel.bias_hh_l0[forget].any()
    others = torch.cat(
        [bias[part] for bias in (kernel.bias_ih_l0, kernel.bias_hh_l0) for part in (slice(SIZE), slice(2 * SIZE, None))]
    )
    assert others.abs().max() <= SIZE**-0.5  # torch's own initialisation
    assert others.any()


def test_the_gradient_of_the_cell_state_is_the_forget_gate_if_the_hidden_path_is_zero(inputs):
    cell = made(LSTM)
    with torch.no_grad():
        cell.kernel.weight_hh_l0.zero_()
    start = torch.randn(ROWS, SIZE, dtype=torch.float64, requires_grad=True)
    state = {"hidden": torch.randn(ROWS, SIZE, dtype=torch.float64), "cell": start}
    gates = inputs @ cell.kernel.weight_ih_l0.T + cell.kernel.bias_ih_l0 + cell.kernel.bias_hh_l0
    forget = gates[..., SIZE : 2 * SIZE].sigmoid()  # (rows, time, size)

    _, once = cell(cell.project(inputs[:, 0]), state)
    jacobian = torch.autograd.functional.jacobian(
        lambda before: cell(cell.project(inputs[:1, 0]), {"hidden": state["hidden"][:1], "cell": before[None]})[1][
            "cell"
        ][0],
        start[0].detach(),
    )
    torch.testing.assert_close(jacobian, torch.diag(forget[0, 0]))
    torch.testing.assert_close(torch.autograd.grad(once["cell"].sum(), start)[0], forget[:, 0])

    _, last = stepped(cell, inputs, state)  # over many steps the product of the gates
    torch.testing.assert_close(torch.autograd.grad(last["cell"].sum(), start)[0], forget.prod(1))


# -- padded batches


def real(run, cell, padded, state):
    """All real outputs and final states of a run, and the gradients of their squares."""
    leaves = {name: value.detach().requires_grad_() for name, value in flatten(state).items()}
    values = padded.values.detach().requires_grad_()
    outputs, ends = run(cell, Padded(values, padded.lengths), nest(leaves))
    found = [outputs[padded.mask], *(flatten(ends)[name] for name in leaves)]
    loss = sum((weight * part.pow(2)).sum() for weight, part in enumerate(found, start=1))
    return found, torch.autograd.grad(loss, [values, *leaves.values(), *cell.parameters()])


def packed_run(cell, padded, state):
    """The same by torch's packed sequences."""
    packed = pack_padded_sequence(padded.values, padded.lengths, batch_first=True, enforce_sorted=False)
    start = tuple(value[None] for value in state.values())
    outputs, ends = cell.kernel(packed, start if len(start) > 1 else start[0])
    ends = ends if len(start) > 1 else [ends]
    return pad_packed_sequence(outputs, True)[0], {name: end[0] for name, end in zip(state, ends)}


def rows_alone(cell, padded, state):
    """Each row without padding, step by step."""
    outputs, ends = torch.zeros(*padded.values.shape[:2], cell.size, dtype=torch.float64), []
    for row, length in enumerate(padded.lengths):
        own = select(state, torch.tensor([row]))
        output, end = stepped(cell, padded.values[row : row + 1, :length], own)
        outputs[row, :length] = output[0]
        ends.append(end)
    return outputs, over_tensors(lambda *values: torch.cat(values), *ends)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-6)])
@pytest.mark.parametrize("part", [Elman, LSTM, GRU])
def test_a_padded_run_and_its_gradients_equal_torchs_on_packed_input(inputs, part, dtype, tolerance, training):
    cell = made(part).to(dtype).train(training)  # dtypes have different kernels
    padded, state = Padded(inputs.to(dtype), LENGTHS), random_state(cell)
    ours, theirs = real(type(cell).run, cell, padded, state), real(packed_run, cell, padded, state)
    torch.testing.assert_close(ours[0], theirs[0], rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(ours[1], theirs[1], rtol=10 * tolerance, atol=10 * tolerance)


@pytest.mark.parametrize("case", cases("cells"))
def test_a_padded_run_and_its_gradients_equal_those_of_single_rows(case):
    cell = case()
    padded = Padded(torch.randn(ROWS, TIME, cell.input_size, dtype=torch.float64), LENGTHS)
    state = random_state(cell)
    alone = real(rows_alone, cell, padded, state)
    torch.testing.assert_close(real(type(cell).run, cell, padded, state), alone)
    torch.testing.assert_close(real(Cell.run, cell, padded, state), alone)  # the loop, for cells with a kernel too


@pytest.mark.parametrize("width", [2, 3])
@pytest.mark.parametrize("case", cases("cells"))
def test_gradients_of_a_padded_run_are_right_for_inputs_states_and_every_parameter(case, width):
    cell = case(input_size=width, size=3)
    start = flatten(cell.start(2))
    lengths = torch.tensor([1, 3])

    def run(values, *given):  # gradcheck changes the parameters in place
        outputs, end = cell.run(Padded(values, lengths), nest(dict(zip(start, given))))
        return outputs[mask], *flatten(end).values()

    values = torch.randn(2, 3, width, dtype=torch.float64, requires_grad=True)
    mask = Padded(values, lengths).mask
    states = [torch.randn_like(value, requires_grad=True) for value in start.values()]
    assert torch.autograd.gradcheck(run, (values, *states, *cell.parameters()))


@pytest.mark.parametrize("case", cases("cells"))
def test_a_row_of_length_0_keeps_its_initial_state(case):
    cell = case()
    values = torch.randn(ROWS, TIME, cell.input_size, dtype=torch.float64)
    state = random_state(cell)
    _, end = cell.run(Padded(values, torch.tensor([3, 0, TIME, 0])), state)
    for after, before in zip(flatten(end).values(), flatten(state).values(), strict=True):
        assert torch.equal(after[[1, 3]], before[[1, 3]])
        assert not (after[[0, 2]] == before[[0, 2]]).any()


@pytest.mark.parametrize("case", cases("cells"))
def test_padding_is_never_read(case):
    cell = case().float()
    values = torch.randn(ROWS, TIME, cell.input_size)
    mask = Padded(values, LENGTHS).mask
    other = torch.where(mask[:, :, None], values, 1e3 * torch.randn_like(values))
    outputs, end = cell.run(Padded(values, LENGTHS), cell.start(ROWS))
    again, same = cell.run(Padded(other, LENGTHS), cell.start(ROWS))
    assert torch.equal(outputs[mask], again[mask])
    assert all(map(torch.equal, flatten(end).values(), flatten(same).values()))


class Counting(Cell):
    """A user's cell, with a nested state that has integers in it."""

    def project(self, inputs):
        return inputs.sum(-1, keepdim=True)

    def start(self, rows):
        return {"hidden": torch.zeros(rows, 1), "inner": {"frame": torch.zeros(rows, dtype=torch.long)}}

    def forward(self, projected, state):
        hidden = state["hidden"] + projected
        return hidden, {"hidden": hidden, "inner": {"frame": state["inner"]["frame"] + 1}}


def test_any_cell_returns_the_state_at_each_rows_own_end():
    cell = Counting(input_size=2, size=1)
    padded = Padded(torch.ones(ROWS, TIME, 2), LENGTHS)
    outputs, end = cell.run(padded, cell.start(ROWS))
    assert end["inner"]["frame"].tolist() == LENGTHS.tolist()
    assert end["hidden"][:, 0].tolist() == (2 * LENGTHS).tolist()
    assert outputs[0, :, 0].tolist() == [2 * time for time in range(1, TIME + 1)]


@pytest.mark.parametrize("lengths", [LENGTHS, torch.full((ROWS,), TIME)])
@pytest.mark.parametrize("case", cases("cells"))
def test_every_cell_runs_under_bf16_autocast(case, lengths):
    cell = case().float()
    padded = Padded(torch.randn(ROWS, TIME, cell.input_size), lengths)
    outputs, end = cell.run(padded, cell.start(ROWS))
    with torch.autocast("cpu", torch.bfloat16):
        coarse, coarse_end = cell.run(padded, cell.start(ROWS))
    torch.testing.assert_close(coarse[padded.mask].float(), outputs[padded.mask], atol=0.05, rtol=0.05)
    torch.testing.assert_close(coarse_end["hidden"].float(), end["hidden"], atol=0.05, rtol=0.05)


# -- both directions


@pytest.mark.parametrize("case", [case for case in cases("cells") if "input_size" not in case.values[0].keywords])
def test_the_backward_direction_starts_at_each_sequences_own_end(case):
    factory = partial(*case.args[:1], **case.keywords)
    encoder = build(Recurrent, cell=factory, bidirectional=True, layers=1, embedding_size=WIDTH, size=SIZE)
    batch = source((5, 3, 1, 4))
    memory = encoder(batch)
    backwards = encoder.backwards[0]
    for row, length in enumerate(batch.lengths):
        flipped = encoder.embedding(batch.values[row : row + 1, :length]).flip(1)
        outputs, end = stepped(backwards, flipped, backwards.start(1))
        torch.testing.assert_close(memory.states[row, :length, SIZE:], outputs[0].flip(0))
        for name, value in without_costs(end).items():
            torch.testing.assert_close(memory.final["layers"]["0"][name][row, SIZE:], value[0])


@pytest.mark.parametrize(("ours", "theirs"), [(LSTM, nn.LSTM), (GRU, nn.GRU), (Elman, nn.RNN)])
def test_the_bidirectional_encoder_equals_torchs_on_packed_input(ours, theirs):
    encoder = build(Recurrent, cell=ours, bidirectional=True, layers=2, embedding_size=WIDTH, size=SIZE)
    reference = theirs(WIDTH, SIZE, num_layers=2, bidirectional=True, batch_first=True).double()
    weights = {}
    for suffix, cells in (("", encoder.forwards), ("_reverse", encoder.backwards)):
        for layer, cell in enumerate(cells):
            for name, parameter in cell.kernel.named_parameters():
                weights[name.replace("_l0", f"_l{layer}") + suffix] = parameter
    reference.load_state_dict(weights)

    batch = source((5, 3, 1, 4))
    packed = pack_padded_sequence(encoder.embedding(batch.values), batch.lengths, True, enforce_sorted=False)
    outputs, final = reference(packed)
    memory = encoder(batch)
    torch.testing.assert_close(memory.states[memory.mask], pad_packed_sequence(outputs, True)[0][memory.mask])
    ends = {"hidden": final[0], "cell": final[1]} if ours is LSTM else {"hidden": final}
    for name, value in ends.items():  # (layers * directions, rows, size)
        for layer in range(2):
            both = torch.cat([value[2 * layer], value[2 * layer + 1]], dim=-1)
            torch.testing.assert_close(memory.final["layers"][str(layer)][name], both)
    torch.testing.assert_close(memory.final["summary"], memory.final["layers"]["1"]["hidden"])
