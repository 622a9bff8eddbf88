"""Adaptive computation time against the equations of Graves 2016, in cells, in decoders and in depth."""

import pytest
import torch
from torch import nn

from seqloom.errors import SeqloomError
from seqloom.nn.cells.adaptive import Adaptive
from seqloom.nn.cells.elman import Elman
from seqloom.nn.cells.gru import GRU
from seqloom.nn.cells.lstm import LSTM
from seqloom.nn.decoders.pointer import Pointer
from seqloom.nn.decoders.recurrent import Recurrent as Decoder
from seqloom.nn.encoders.pyramidal import Pyramidal
from seqloom.nn.encoders.recurrent import Recurrent as Encoder
from seqloom.nn.encoders.transformer import Transformer
from seqloom.nn.model import Model
from seqloom.nn.ops.halting import Halting
from seqloom.nn.teacher_forcing import adaptive_steps
from seqloom.objectives.cross_entropy import CrossEntropy
from seqloom.types import Batch, Memory, Padded, costs, over_tensors, sum_costs
from tests.building import BOS, VOCABULARY, build, source

ROWS, WIDTH, SIZE = 4, 6, 8


def double(values, gradients=False):
    return torch.tensor(values, dtype=torch.float64, requires_grad=gradients)


def ponder(probabilities, **settings):
    """The result for rows with given halting probabilities, (n, rows), and states 1, 2, .. n."""
    halting = Halting(size=1, **settings).double()
    with torch.no_grad():
        halting.unit.weight.fill_(1)
        halting.unit.bias.fill_(0)

    def step(number, state, running):
        logit = torch.logit(probabilities[min(number, len(probabilities) - 1)])[:, None]
        return logit, {"number": state["number"] + 1}

    rows = probabilities.shape[1]
    return halting(step, {"number": torch.zeros(rows, 1, dtype=torch.float64)}, rows)


def make_rows_differ(halting):
    """Give the halting unit large weights, so that rows differ in their steps."""
    with torch.no_grad():
        halting.unit.weight.mul_(12)
        halting.unit.bias.fill_(-1)


# -- the equations


def test_an_example_with_three_steps():
    probabilities = double([[0.3], [0.4], [0.5]], gradients=True)
    found = ponder(probabilities)
    assert found.steps.tolist() == [3]
    torch.testing.assert_close(found.ponder, double([3.3]))  # N + R, R = 1 - 0.7
    torch.testing.assert_close(found.state["number"], double([[0.3 * 1 + 0.4 * 2 + 0.3 * 3]]))
    (gradient,) = torch.autograd.grad(found.ponder.sum(), probabilities)
    torch.testing.assert_close(gradient, double([[-1], [-1], [0]]))


def test_the_last_weight_is_the_remainder_not_the_last_probability():
    high, low = (ponder(double([[0.3], [0.4], [last]])) for last in (0.95, 0.5))
    torch.testing.assert_close(high.state, low.state)


@pytest.mark.parametrize("epsilon", [0.0, 0.01, 0.5, 1.0])
@pytest.mark.parametrize("most", [1, 3, 10])
def test_weights_sum_to_1_and_the_steps_follow_the_definition(epsilon, most):
    torch.manual_seed(1)
    probabilities = torch.rand(most, 50, dtype=torch.float64) * 0.6
    found = ponder(probabilities, most=most, epsilon=epsilon)
    for row in range(50):
        sums = probabilities[:, row].cumsum(0).tolist()
        steps = next((n for n, total in enumerate(sums, start=1) if total >= 1 - epsilon), most)
        remainder = 1 - (sums[steps - 2] if steps > 1 else 0)
        weights = [*probabilities[: steps - 1, row].tolist(), remainder]
        assert sum(weights) == pytest.approx(1)
        assert found.steps[row] == steps
        assert found.ponder[row].item() == pytest.approx(steps + remainder)
        mean = sum(weight * number for number, weight in enumerate(weights, start=1))
        assert found.state["number"][row].item() == pytest.approx(mean)


def test_no_step_is_computed_once_all_rows_have_halted():
    made = []
    halting = Halting(size=1)
    nn.init.ones_(halting.unit.weight)

    def step(number, state, running):
        made.append(running.tolist())
        return torch.tensor([[9.0], [-9.0 if number < 2 else 9.0]]), state

    halting(step, {}, 2)
    assert made == [[True, True], [False, True], [False, True]]


def test_at_first_rows_halt_after_few_steps():
    torch.testing.assert_close(Halting(size=3).unit.bias.data, torch.ones(1))


@pytest.mark.parametrize("settings", [{"most": 0}, {"epsilon": -0.1}, {"epsilon": 1.1}])
def test_impossible_settings_are_refused(settings):
    with pytest.raises(ValueError, match="must be"):
        Halting(size=2, **settings)


# -- cells


def by_the_paper(cell, value, state):
    """Graves 2016, one row, as written there. The state is without costs."""
    inner, halting = cell.cell, cell.halting
    outputs, states, probabilities = [], [], []
    while True:
        flag = torch.ones(1, dtype=torch.float64) * (not outputs)
        output, state = inner(inner.project(torch.cat([value, flag])[None]), state)
        outputs.append(output[0])
        states.append(state)
        probabilities.append(torch.sigmoid(halting.unit.weight[0] @ output[0] + halting.unit.bias[0]))
        if sum(probabilities).item() >= 1 - halting.epsilon or len(probabilities) == halting.most:
            break
    remainder = 1 - sum(probabilities[:-1])
    weights = [*probabilities[:-1], remainder]
    mean = over_tensors(lambda *values: sum(w * v for w, v in zip(weights, values)), *states)
    return sum(w * v for w, v in zip(weights, outputs)), mean, len(probabilities) + remainder


@pytest.mark.parametrize("inner", [Elman, GRU, LSTM])
@pytest.mark.parametrize("most", [2, 10])
def test_a_cell_and_its_gradients_equal_the_papers_loop(inner, most):
    cell = build(Adaptive, input_size=WIDTH, size=SIZE, cell=inner, most=most)
    make_rows_differ(cell.halting)
    values = torch.randn(ROWS, 3, WIDTH, dtype=torch.float64)
    outputs, state = cell.run(Padded(values, torch.full((ROWS,), 3)), cell.start(ROWS))
    theirs, ponder, steps = [], [], set()
    for row in values:
        now, spent = cell.cell.start(1), 0
        for value in row:
            output, now, more = by_the_paper(cell, value, now)
            spent, steps = spent + more, steps | {int(more)}
            theirs.append(output)
        ponder.append(spent)
    assert most == 2 or len(steps) > 1  # rows differ in their steps
    torch.testing.assert_close(outputs.flatten(0, 1), torch.stack(theirs))
    torch.testing.assert_close(state["cost"]["ponder"], torch.stack(ponder))
    losses = (
        outputs.pow(2).sum() + 0.1 * state["cost"]["ponder"].sum(),
        torch.stack(theirs).pow(2).sum() + 0.1 * sum(ponder),
    )
    ours, expected = (torch.autograd.grad(loss, list(cell.parameters())) for loss in losses)
    torch.testing.assert_close(ours, expected)


def test_gradients_are_right_with_the_number_of_steps_fixed():
    cell = build(Adaptive, input_size=3, size=4, cell=GRU)
    values = torch.randn(2, 2, 3, dtype=torch.float64)
    names = [name for name, _ in cell.named_parameters()]

    def run(*parameters):
        with_these = nn.utils.stateless._reparametrize_module(cell, dict(zip(names, parameters)))
        with with_these:
            outputs, state = cell.run(Padded(values, torch.tensor([2, 2])), cell.start(2))
        return outputs, state["cost"]["ponder"]

    given = tuple(parameter.detach().clone().requires_grad_() for parameter in cell.parameters())
    assert torch.autograd.gradcheck(run, given)


@pytest.mark.parametrize("inner", [Elman, GRU, LSTM])
def test_if_one_step_is_always_enough_the_cell_equals_the_inner_one(inner):
    cell = build(Adaptive, input_size=WIDTH, size=SIZE, cell=inner, epsilon=1.0)
    lengths = torch.tensor([5, 2, 1, 4])
    values = torch.randn(ROWS, 5, WIDTH, dtype=torch.float64)
    outputs, state = cell.run(Padded(values, lengths), cell.start(ROWS))
    flagged = torch.cat([values, torch.ones(ROWS, 5, 1, dtype=torch.float64)], dim=-1)
    plain, last = cell.cell.run(Padded(flagged, lengths), cell.cell.start(ROWS))
    mask = Padded(values, lengths).mask
    torch.testing.assert_close(outputs[mask], plain[mask])
    cost = state.pop("cost")
    torch.testing.assert_close(state, last)
    assert cost["steps"].tolist() == lengths.tolist()
    assert cost["ponder"].tolist() == (2 * lengths).tolist()  # N = 1 and R = 1 each


def test_a_row_that_has_halted_is_not_changed_by_rows_that_continue():
    cell = build(Adaptive, input_size=WIDTH, size=SIZE)
    values = torch.randn(200, WIDTH, dtype=torch.float64) * 5
    outputs, state = cell(cell.project(values), cell.start(200))
    steps = state["cost"]["steps"]
    assert steps.min() < steps.max()
    for row in (int(steps.argmin()), int(steps.argmax())):
        alone, own = cell(cell.project(values[row : row + 1]), cell.start(1))
        torch.testing.assert_close(alone[0], outputs[row])
        assert own["cost"]["steps"][0] == steps[row]


def test_an_adaptive_cell_cannot_wrap_another():
    with pytest.raises(ValueError, match="cannot wrap another adaptive cell"):
        Adaptive(input_size=2, size=2, cell=Adaptive)


# -- costs


def adaptive_encoder(**settings):
    return build(Encoder, cell=Adaptive, **settings)


@pytest.mark.parametrize("settings", [{}, {"bidirectional": True}, {"reverse": True}])
def test_an_encoders_cost_is_the_sum_over_real_tokens(settings):
    encoder = adaptive_encoder(**settings)
    batch = source((5, 3, 1))
    memory = encoder(batch, attention=True)
    steps, cost = memory.extra["steps"][:, :, 0], sum_costs(memory.costs)
    torch.testing.assert_close((steps * batch.mask).sum(1), cost["steps"])
    assert (steps[batch.mask] == steps[batch.mask].round()).all()
    for row, length in enumerate(batch.lengths):
        alone = encoder(Padded(batch.values[row : row + 1, :length], batch.lengths[row : row + 1]), attention=True)
        torch.testing.assert_close(sum_costs(alone.costs)["ponder"][0], cost["ponder"][row])
        torch.testing.assert_close(alone.extra["steps"][0, :, 0], steps[row, :length])
    assert "steps" not in encoder(batch).extra


def test_both_directions_add_to_the_cost():
    both, one = adaptive_encoder(bidirectional=True, layers=1), adaptive_encoder(layers=1)
    one.load_state_dict({name: value for name, value in both.state_dict().items() if "backwards" not in name})
    back = adaptive_encoder(layers=1, reverse=True)
    back.load_state_dict({name: both.state_dict()[name.replace("forwards", "backwards")] for name in one.state_dict()})
    batch = source()
    found = [sum_costs(encoder(batch).costs)["ponder"] for encoder in (both, one, back)]
    torch.testing.assert_close(found[0], found[1] + found[2])


@pytest.mark.parametrize("part", [Encoder, Pyramidal])
def test_the_cost_of_a_stream_accumulates_over_chunks(part):
    encoder = build(part, cell=Adaptive, bidirectional=False)
    whole = source((6, 6))
    state, memory = encoder.start(2), None
    for begin in range(0, 6, 2):
        chunk = Padded(whole.values[:, begin : begin + 2], torch.tensor([2, 2]))
        more, state = encoder.extend(chunk, state, closed=begin == 4)
        memory = more if memory is None else memory.append(more)
    torch.testing.assert_close(memory.extra["cost"], encoder(whole).extra["cost"])
    torch.testing.assert_close(memory.forget(1).extra["cost"], memory.extra["cost"])


def model_of(bridge, cell=Adaptive, **settings):
    encoder, decoder = adaptive_encoder(layers=2), build(Decoder, cell=cell, bridge=bridge, **settings)
    return Model(encoder, decoder).double()


def batch_of(lengths=(4, 2, 3)):
    words = source(lengths, seed=3)
    inputs = torch.cat([torch.full((len(lengths), 1), BOS), words.values], dim=1)[:, :-1]
    return Batch(source(), Padded(inputs, words.lengths), words)


@pytest.mark.parametrize("bridge", ["dense", "copy", "hidden", "zero"])
def test_a_bridge_passes_on_vectors_and_no_costs(bridge):
    model, batch = model_of(bridge), batch_of()
    memory = model.encode(batch.source)
    start = model.decoder.start(memory)
    assert set(costs(start)) == {"layers.0", "layers.1"}
    assert all(not cost.any() for entries in costs(start).values() for cost in entries.values())
    assert set(start["layers"]["0"]) == {"hidden", "cell", "cost"}
    spent = model.decoder(memory, batch.inputs).state
    expected = sum_costs(memory.costs)["ponder"] + sum_costs(costs(spent))["ponder"]
    output = model(batch)
    assert set(output.costs) == {f"{part}.layers.{layer}" for part in ("encoder", "decoder") for layer in (0, 1)}
    torch.testing.assert_close(sum_costs(output.costs)["ponder"], expected)
    if bridge == "copy":
        torch.testing.assert_close(start["layers"]["1"]["cell"], memory.final["layers"]["1"]["cell"])


def test_the_cost_of_a_source_counts_once_however_many_attentions_read_it():
    encoder = adaptive_encoder(layers=1)
    decoder = build(Pointer, glimpses=1, layers=1)
    model = Model(encoder, decoder).double()
    given = source((4, 2, 3))
    pointers = Padded(given.lengths.new_full((3, 1), VOCABULARY), torch.ones(3, dtype=torch.long))
    batch = Batch(given, Padded(torch.full((3, 1), BOS), pointers.lengths), pointers)
    torch.testing.assert_close(sum_costs(model(batch).costs), sum_costs(encoder(given).costs))


def test_the_cell_that_reads_the_context_costs_too():
    from seqloom.nn.attention.dot import Dot

    model, batch = model_of("zero", attention=Dot, combine="rnn", layers=1), batch_of((1, 1, 1))
    state = model.decoder(model.encode(batch.source), batch.inputs).state
    assert (state["layers"]["0"]["cost"]["steps"] >= 2).all()
    memory = model.encode(batch.source)
    _, stepped = model.decoder.step(batch.inputs.values[:, 0], model.decoder.start(memory), memory)
    torch.testing.assert_close(stepped, state)


def test_a_window_with_a_carried_state_costs_only_its_own_steps():
    decoder = build(Decoder, cell=Adaptive, memory_size=0)
    model = Model(None, decoder).double()
    words = source((6, 6), seed=5)
    halves = [Padded(words.values[:, part], torch.tensor([3, 3])) for part in (slice(0, 3), slice(3, 6))]
    first = model(Batch(None, halves[0], halves[0], carry=True))
    second = model(Batch(None, halves[1], halves[1], carry=True, state=first.state))
    whole = model(Batch(None, words, words))
    spent, more, expected = (sum_costs(each.costs)["ponder"] for each in (first, second, whole))
    torch.testing.assert_close(spent + more, expected)


def test_the_objective_weighs_ponder_and_steps_have_no_gradient():
    model, batch = model_of("dense"), batch_of()
    plain, weighed, counted = (
        CrossEntropy(costs=each)(model, batch, 0.0) for each in ({}, {"ponder": 0.5}, {"steps": 0.5})
    )
    torch.testing.assert_close(weighed.total - plain.total, 0.5 * weighed.logs["ponder"])
    unit = model.decoder.stack.cells[0].halting.unit.bias
    gradients = [torch.autograd.grad(each.total, unit)[0] for each in (plain, weighed, counted)]
    assert not torch.equal(gradients[0], gradients[1])
    torch.testing.assert_close(gradients[0], gradients[2])


def test_costs_count_in_training_and_not_in_a_validation():
    model, batch = model_of("dense"), batch_of()
    objective = CrossEntropy(costs={"ponder": 0.5})
    assert objective(model, batch, 0.0).total > 1.01 * CrossEntropy()(model, batch, 0.0).total
    validated = objective.eval()(model, batch, 0.0)
    torch.testing.assert_close(validated.total, CrossEntropy().eval()(model, batch, 0.0).total)
    torch.testing.assert_close(validated.total, validated.logs["nll"])
    assert validated.logs["ponder"] > 0  # still reported


def test_an_unknown_cost_is_refused():
    with pytest.raises(SeqloomError, match="it has ponder, steps"):
        CrossEntropy(costs={"thought": 1.0})(model_of("dense"), batch_of(), 0.0)


def test_steps_before_each_token_equal_those_of_the_decoder_run_so_far():
    decoder = build(Decoder, cell=Adaptive, memory_size=0)
    for cell in decoder.stack.cells:
        make_rows_differ(cell.halting)
    memory, inputs = Memory.empty(2), source((5, 3), seed=7)
    steps = adaptive_steps(decoder, memory, inputs)
    for length in range(1, 6):
        so_far = decoder(memory, Padded(inputs.values[:, :length], torch.full((2,), length))).state
        torch.testing.assert_close(steps[:, :length].sum(1), sum_costs(costs(so_far))["steps"])
    assert steps.unique().numel() > 1
    assert adaptive_steps(build(Decoder, memory_size=0), memory, inputs) is None


# -- depth: the Universal Transformer


def deep(**settings):
    return build(Transformer, adaptive=True, **settings)


def layered(encoder, values):
    """The layer on one sentence, (T, size), with positions and time already added."""
    from seqloom.nn.ops.packing import Packing

    return encoder.layers[0].encode(values, Packing.unpadded(1, len(values), values.device), None)[0]


def sinusoids(encoder, length):
    return encoder.positioned.positions(torch.arange(length))


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_depth_equals_the_papers_loop_position_by_position(norm):
    encoder = deep(layers=6, norm=norm)
    make_rows_differ(encoder.halting)
    batch = source((5, 4))
    memory = encoder(batch, attention=True)
    seen = set()
    for row, length in enumerate(batch.lengths.tolist()):
        values = encoder.embedding(batch.values[row, :length]) * 8**0.5
        halted, totals = [False] * length, [0.0] * length
        means, steps, remainders = torch.zeros_like(values), [0] * length, [None] * length
        for time in range(6):
            placed = values + sinusoids(encoder, length) + sinusoids(encoder, 7)[time]
            new = layered(encoder, placed)
            values = torch.stack([old if done else other for done, old, other in zip(halted, values, new)])
            probabilities = torch.sigmoid(encoder.halting.unit(values))[:, 0]
            for position in range(length):
                if halted[position]:
                    continue
                last = time == 5 or (totals[position] + probabilities[position]).item() >= 0.99
                weight = 1 - totals[position] if last else probabilities[position]
                means[position] = means[position] + (weight * values[position]).detach()
                totals[position], steps[position] = totals[position] + weight, steps[position] + 1
                halted[position], remainders[position] = last, weight
        torch.testing.assert_close(memory.states[row, :length], encoder.norm(means))
        assert memory.extra["steps"][row, :length, 0].tolist() == steps
        torch.testing.assert_close(memory.extra["cost"]["ponder"][row], sum(steps) + sum(remainders))
        seen |= set(steps)
    assert len(seen) > 1  # positions differ in depth


def test_if_no_position_halts_early_one_layer_is_repeated_to_the_limit():
    encoder = deep(layers=4)
    with torch.no_grad():
        encoder.halting.unit.bias.fill_(-1e4)
    batch = source((5,))
    values = encoder.embedding(batch.values[0]) * 8**0.5
    for time in range(4):
        values = layered(encoder, values + sinusoids(encoder, 5) + sinusoids(encoder, 5)[time])
    torch.testing.assert_close(encoder(batch).states[0], encoder.norm(values))
    assert encoder(batch).extra["cost"]["steps"].tolist() == [20]


def test_padding_costs_nothing_and_there_are_the_weights_of_one_layer():
    encoder, flat = deep(layers=6), build(Transformer, layers=1)
    batch = source((5, 3, 1))
    wider = Padded(torch.cat([batch.values, batch.values], dim=1), batch.lengths)
    torch.testing.assert_close(encoder(wider).extra["cost"], encoder(batch).extra["cost"])
    units = sum(value.numel() for value in encoder.halting.parameters())
    assert sum(map(torch.numel, encoder.parameters())) == sum(map(torch.numel, flat.parameters())) + units


def test_if_one_layer_is_always_enough_it_is_applied_once():
    encoder = deep(layers=6, epsilon=1.0)
    batch = source((5,))
    values = encoder.embedding(batch.values[0]) * 8**0.5 + sinusoids(encoder, 5) + sinusoids(encoder, 1)[0]
    torch.testing.assert_close(encoder(batch).states[0], encoder.norm(layered(encoder, values)))


# -- what cannot be exported


def test_models_with_data_dependent_depth_are_not_exported(tmp_path):
    from seqloom.engines.export_onnx import refuse

    with pytest.raises(SeqloomError, match="adaptive computation time"):
        refuse(model_of("dense"), int8=False)
