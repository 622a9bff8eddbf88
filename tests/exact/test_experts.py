"""Mixture of experts: routing, dispatch, costs and their gradients."""

import math

import pytest
import torch

from seqloom.errors import SeqloomError
from seqloom.nn.cells.adaptive import Adaptive
from seqloom.nn.decoders.recurrent import Recurrent as RecurrentDecoder
from seqloom.nn.decoders.transformer import Transformer as Decoder
from seqloom.nn.encoders.recurrent import Recurrent
from seqloom.nn.encoders.transformer import Transformer
from seqloom.nn.layers.experts import Experts, ExpertsBetween
from seqloom.nn.model import Model
from seqloom.nn.ops.balance import evenness, squared_variation
from seqloom.nn.ops.packing import Packing
from seqloom.objectives.cross_entropy import CrossEntropy
from seqloom.types import Batch, Memory, Padded, costs, hold, select, sum_costs
from tests.building import BOS, EXPERTS, build, source

SIZE, HIDDEN = 8, 6


def experts_of(count=5, **settings):
    return build(Experts, size=SIZE, experts=count, hidden=HIDDEN, **settings)


def positions(count=40, seed=0):
    return torch.randn(count, SIZE, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def every_expert(layer, values):
    """The outputs of all experts for all positions.  (N, E, size)"""
    outputs = []
    for inner, inner_bias, outer, outer_bias in zip(layer.inner, layer.inner_bias, layer.outer, layer.outer_bias):
        outputs.append((values @ inner.T + inner_bias).relu() @ outer.T + outer_bias)
    return torch.stack(outputs, dim=1)


# -- the mixture


def test_all_experts_active_without_noise_are_a_dense_mixture():
    layer, values = experts_of(active_experts=5, noise=False), positions()
    found, routing = layer(values)
    gates = (values @ layer.gate.T).softmax(-1)
    torch.testing.assert_close(found, (gates[:, :, None] * every_expert(layer, values)).sum(1))
    torch.testing.assert_close(routing.importance, gates)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("active", [2, 3])
def test_sparse_dispatch_is_the_dense_mixture_masked(active, training):
    layer, values = experts_of(active_experts=active).train(training), positions()
    found, routing = layer(values)
    torch.testing.assert_close(found, (routing.importance[:, :, None] * every_expert(layer, values)).sum(1))
    if not training:  # keep the k largest, softmax
        scores = values @ layer.gate.T
        kth = scores.sort(-1, descending=True).values[:, active - 1 : active]
        torch.testing.assert_close(routing.importance, scores.masked_fill(scores < kth, -math.inf).softmax(-1))


def test_sparse_dispatch_has_the_gradients_of_the_dense_mixture():
    layer, values = experts_of(), positions().requires_grad_()
    weigh = positions(seed=1)
    found, routing = layer(values)
    dense = (routing.importance[:, :, None] * every_expert(layer, values)).sum(1)
    inputs = [values, *(weight for name, weight in layer.named_parameters() if name != "noise")]
    ours = torch.autograd.grad((weigh * found).sum(), inputs, retain_graph=True)
    torch.testing.assert_close(ours, torch.autograd.grad((weigh * dense).sum(), inputs))


@pytest.mark.parametrize("training", [False, True])
def test_each_position_uses_exactly_as_many_experts_as_are_active(training):
    layer = experts_of(7, active_experts=3).train(training)
    _, routing = layer(positions())
    assert ((routing.importance > 0).sum(-1) == 3).all()
    torch.testing.assert_close(routing.importance.sum(-1), torch.ones(40, dtype=torch.float64))
    assert (routing.gates.diff(dim=-1) <= 0).all()  # the largest first
    for row, chosen in enumerate(routing.chosen):
        assert set(chosen.tolist()) == set(routing.importance[row].nonzero()[:, 0].tolist())


def test_positions_are_independent_and_there_may_be_none():
    layer, values = experts_of(), positions()
    together, _ = layer(values)
    torch.testing.assert_close(torch.cat([layer(row[None])[0] for row in values]), together)
    empty, routing = layer(values[:0])
    assert empty.shape == (0, SIZE)
    assert routing.load.shape == (0, 5)


def test_there_is_noise_in_training_only():
    layer, values = experts_of(), positions()
    assert torch.equal(layer(values)[0], layer(values)[0])
    layer.train()
    assert not torch.equal(layer(values)[0], layer(values)[0])
    quiet = experts_of(noise=False).train()
    assert torch.equal(quiet(values)[0], quiet(values)[0])


def test_gates_start_at_zero_so_that_chance_shares_positions_out():
    layer = Experts(size=SIZE, experts=4, hidden=HIDDEN)
    assert not layer.gate.any()
    assert not layer.noise.any()
    torch.manual_seed(1)
    _, routing = layer(torch.randn(4000, SIZE))
    counts = torch.bincount(routing.chosen.flatten(), minlength=4)
    assert counts.sum() == 8000
    assert ((counts - 2000).abs() < 200).all()
    assert Experts(size=SIZE, experts=4, hidden=HIDDEN, noise=False).gate.any()


@pytest.mark.parametrize(("experts", "active"), [(4, 5), (4, 1), (1, 2)])
def test_impossible_numbers_of_active_experts_are_refused_in_one_line(experts, active):
    for make in (
        lambda: Experts(size=SIZE, experts=experts, active_experts=active, hidden=HIDDEN),
        lambda: build(Transformer, experts=experts, active_experts=active),
        lambda: build(Decoder, experts=experts, active_experts=active),
        lambda: build(Recurrent, experts=experts, active_experts=active),
        lambda: build(RecurrentDecoder, experts=experts, active_experts=active),
    ):
        with pytest.raises(
            ValueError, match=f"^active_experts = {active} must be from 2 to experts = {experts}"
        ) as error:
            make()
        assert "\n" not in str(error.value)


def test_experts_need_layers_to_stand_between_and_layers_that_are_not_repeated():
    for part in (Recurrent, RecurrentDecoder):
        with pytest.raises(ValueError, match="experts stand between layers: set layers = 2 or more"):
            build(part, layers=1, experts=4)
    with pytest.raises(ValueError, match="experts do not work with adaptive = true"):
        build(Transformer, adaptive=True, experts=4)


# -- load and importance


def test_the_load_is_how_often_an_expert_is_chosen_when_its_noise_alone_is_drawn_again():
    layer, values = experts_of(4).train(), positions(3)
    torch.manual_seed(5)
    _, routing = layer(values)
    torch.manual_seed(5)
    noise = torch.randn(3, 4, dtype=torch.float64)
    clean, scale = values @ layer.gate.T, (values @ layer.noise.T).exp().log1p()
    draws = 40_000
    for row in range(3):
        for expert in range(4):
            noisy = (clean[row] + noise[row] * scale[row]).repeat(draws, 1)
            noisy[:, expert] = clean[row, expert] + torch.randn(draws, dtype=torch.float64) * scale[row, expert]
            chosen = (noisy.topk(2).indices == expert).any(-1).double().mean()
            assert routing.load[row, expert].item() == pytest.approx(chosen.item(), abs=0.01)


def test_the_expected_load_is_the_expected_number_of_positions():
    layer, values = experts_of(4).train(), positions(20)
    torch.manual_seed(1)
    loads = counts = 0
    for _ in range(600):
        _, routing = layer(values)
        loads, counts = loads + routing.load.sum(0), counts + (routing.importance > 0).sum(0)
    torch.testing.assert_close(loads / counts, torch.ones(4, dtype=torch.float64), atol=0.03, rtol=0)


def test_without_noise_the_load_is_the_number_of_positions():
    layer, values = experts_of(), positions()
    _, routing = layer(values)
    torch.testing.assert_close(routing.load.sum(0), (routing.importance > 0).sum(0).double())
    assert not routing.load.requires_grad
    assert experts_of(noise=False)(values)[1].load is None
    assert (experts_of(active_experts=5).train()(values)[1].load == 1).all()


def test_all_gradients_are_those_by_differences_also_of_the_noise():
    layer, values = experts_of(4).train(), positions(6)
    names, weights = zip(*layer.named_parameters())

    def outputs(values, *weights):
        torch.manual_seed(3)
        found, routing = torch.func.functional_call(layer, dict(zip(names, weights)), (values,))
        return found, squared_variation(routing.importance.sum(0)), squared_variation(routing.load.sum(0))

    given = (values.requires_grad_(), *(weight.detach().requires_grad_() for weight in weights))
    assert torch.autograd.gradcheck(outputs, given)
    loads = torch.autograd.grad(outputs(*given)[2], given[1 + names.index("noise")])[0]
    assert loads.any()  # W_n learns from the load


def test_a_scale_that_vanishes_leaves_finite_gradients():
    layer, values = experts_of(4).train(), positions(6)
    torch.nn.init.constant_(layer.noise, -1e4)
    _, routing = layer(values.abs())
    squared_variation(routing.load.sum(0)).backward()
    assert layer.gate.grad.isfinite().all()
    assert layer.noise.grad.isfinite().all()


@pytest.mark.parametrize(
    ("sums", "expected"), [([3.0, 3.0, 3.0], 0), ([6.0, 0.0, 0.0], 2), ([1.0, 2.0, 3.0], 2 / 3 / 4), ([0.0, 0.0], 0)]
)
def test_squared_variation_is_the_variance_over_the_squared_mean(sums, expected):
    assert squared_variation(torch.tensor(sums)).item() == pytest.approx(expected)


@pytest.mark.parametrize(("sums", "expected"), [([2.0] * 4, 1), ([0.0, 5.0, 0.0, 0.0], 0), ([1.0, 1.0, 0.0, 0.0], 0.5)])
def test_evenness_is_the_entropy_over_its_maximum(sums, expected):
    assert evenness(torch.tensor(sums)).item() == pytest.approx(expected)


# -- costs of encoders and decoders


def parts_with_costs(spent):
    return {part: set(entries) for part, entries in spent.items()}


BOTH = {"importance", "load"}


def test_each_layer_of_a_transformer_pays_for_the_real_positions_of_its_rows():
    encoder = build(Transformer, experts=4)
    batch = source((5, 3, 1))
    memory = encoder(batch, attention=True)
    assert parts_with_costs(memory.costs) == {"layers.0": BOTH, "layers.1": BOTH}
    for part, entries in memory.costs.items():
        torch.testing.assert_close(entries["importance"].sum(1), batch.lengths.double())  # gates sum to 1
        torch.testing.assert_close(entries["load"].sum(1), 2 * batch.lengths.double())  # two experts each
        used = memory.extra["experts"][part]  # (B, T, k)
        for row, length in enumerate(batch.lengths):
            counts = torch.bincount(used[row, :length].flatten(), minlength=4)
            torch.testing.assert_close(entries["load"][row], counts.double())
    assert "experts" not in encoder(batch).extra


@pytest.mark.parametrize("settings", [{}, {"bidirectional": True}, {"reverse": True}, {"cell": Adaptive}])
def test_the_experts_between_recurrent_layers_pay_for_the_real_positions_of_their_rows(settings):
    encoder = build(Recurrent, layers=3, **EXPERTS, **settings)
    batch = source((5, 3, 1))
    memory = encoder(batch, attention=True)
    spent = {part: entries for part, entries in memory.costs.items() if part.endswith("experts")}
    assert parts_with_costs(spent) == {"layers.1.experts": BOTH, "layers.2.experts": BOTH}
    assert set(memory.extra["experts"]) == {"layers.1", "layers.2"}
    for layer in (1, 2):
        entries, used = spent[f"layers.{layer}.experts"], memory.extra["experts"][f"layers.{layer}"]
        torch.testing.assert_close(entries["importance"].sum(1), batch.lengths.double())
        for row, length in enumerate(batch.lengths):
            counts = torch.bincount(used[row, :length].flatten(), minlength=4)
            torch.testing.assert_close(entries["load"][row], counts.double())
            alone = encoder(Padded(batch.values[row : row + 1, :length], batch.lengths[row : row + 1]), attention=True)
            assert torch.equal(alone.extra["experts"][f"layers.{layer}"][0], used[row, :length])
    assert all(set(state) <= {"hidden", "cell"} for state in memory.final["layers"].values())


def test_between_recurrent_layers_the_sigmoid_of_the_mixture_is_added():
    layer = build(ExpertsBetween, size=SIZE, experts=4, active_experts=2, hidden=HIDDEN, dropout=0.0)
    values = positions(6).view(2, 3, SIZE)
    found, state, _ = layer(values, Packing.unpadded(2, 3, values.device), layer.start(2))
    mixed, routing = layer.mixture(values.flatten(0, 1))
    torch.testing.assert_close(found, values + mixed.sigmoid().view(2, 3, SIZE))
    torch.testing.assert_close(state["cost"]["importance"], routing.importance.view(2, 3, 4).sum(1))


@pytest.mark.parametrize("order", ["luong", "bahdanau"])
def test_a_decoder_shows_which_experts_each_token_used(order):
    from seqloom.nn.attention.additive import Additive

    memory = Memory(positions(8).view(2, 4, SIZE), torch.tensor([4, 2]), {"summary": positions(2)})
    inputs = Padded(source((4, 2), seed=3).values, torch.tensor([4, 2]))
    for decoder, parts in (
        (build(Decoder, experts=4), {"layers.0": "layers.0", "layers.1": "layers.1"}),
        (build(RecurrentDecoder, attention=Additive, order=order, **EXPERTS), {"layers.1": "layers.1.experts"}),
    ):
        prepared = decoder.prepare(memory)
        output = decoder(prepared, inputs, attention=True)
        assert decoder(prepared, inputs).experts == {}
        assert set(output.experts) == set(parts)
        for part, payer in parts.items():
            for row, length in enumerate(inputs.lengths):
                counts = torch.bincount(output.experts[part][row, :length].flatten(), minlength=4)
                torch.testing.assert_close(costs(output.state)[payer]["load"][row], counts.double())


def test_costs_follow_their_hypothesis():
    decoder = build(Decoder, experts=4, memory_size=0)
    memory, rows = Memory.empty(3), torch.tensor([2, 0, 0])
    _, state = decoder.step(torch.tensor([4, 5, 6]), decoder.start(memory), memory)
    picked = costs(select(state, rows))["layers.1"]["importance"]
    torch.testing.assert_close(picked, costs(state)["layers.1"]["importance"][rows])
    _, after = decoder.step(torch.tensor([4, 5, 6]), state, memory)
    held = costs(hold(torch.tensor([False, True, False]), after, state))["layers.1"]["load"]
    assert held.sum(1).tolist() == [4, 2, 4]


def test_the_cost_of_a_stream_is_that_of_its_last_chunk_by_name_not_by_rank():
    encoder = build(Recurrent, layers=2, **EXPERTS)
    whole = source((6, 6))
    state, memory = encoder.start(2), None
    for begin in range(0, 6, 2):
        chunk = Padded(whole.values[:, begin : begin + 2], torch.tensor([2, 2]))
        more, state = encoder.extend(chunk, state, closed=begin == 4)
        memory = more if memory is None else memory.append(more)
    torch.testing.assert_close(memory.costs, encoder(whole).costs)
    torch.testing.assert_close(memory.forget(5).costs, memory.costs)
    nested = memory.with_extra(glimpse={"keys": memory.states, "cost": memory.extra["cost"]})
    torch.testing.assert_close(nested.append(nested).extra["glimpse"]["cost"], memory.extra["cost"])
    assert nested.forget(2).extra["glimpse"]["keys"].shape[1] == 4


# -- the objective


def model_of(**settings):
    encoder = build(Transformer, experts=4, **settings)
    return Model(encoder, build(RecurrentDecoder, layers=2, cell=Adaptive, **{**EXPERTS, "experts": 3})).double()


def batch_of(lengths=(4, 2, 3)):
    words = source(lengths, seed=3)
    inputs = torch.cat([torch.full((len(lengths), 1), BOS), words.values], dim=1)[:, :-1]
    return Batch(source(), Padded(inputs, words.lengths), words)


def test_the_objective_weighs_the_variation_of_each_layer_by_the_target_tokens():
    model, batch = model_of(), batch_of()
    output = model(batch)
    layers = ("encoder.layers.0", "encoder.layers.1", "decoder.layers.1.experts")  # of 4, 4 and 3 experts
    expected = {}
    for name in BOTH:
        shares = [output.costs[part][name].sum(0) for part in layers]
        expected[name] = 9 * sum(each.var(unbiased=False) / each.mean() ** 2 for each in shares)
    weights = {"importance": 0.5, "load": 0.25, "ponder": 0.125}
    plain, weighed = (CrossEntropy(costs=each)(model, batch, 0.0) for each in ({}, weights))
    expected["ponder"] = sum_costs(output.costs)["ponder"].sum()
    for name, value in expected.items():
        torch.testing.assert_close(weighed.logs[name], value)
    total = sum(weight * expected[name] for name, weight in weights.items())
    torch.testing.assert_close(weighed.total - plain.total, total)
    entropies = []
    for part in layers:
        shares = output.costs[part]["load"].sum(0) / output.costs[part]["load"].sum()
        entropies.append(torch.special.entr(shares).sum() / math.log(len(shares)))
    torch.testing.assert_close(weighed.logs["balance"], 9 * sum(entropies) / 3)


def test_the_weight_of_balance_does_not_depend_on_the_size_of_the_batch():
    model, batch = model_of(), batch_of()
    twice = Batch(
        *(
            Padded(each.values.repeat(2, 1), each.lengths.repeat(2))
            for each in (batch.source, batch.inputs, batch.targets)
        )
    )
    one, two = (CrossEntropy(costs={"importance": 0.5})(model, each, 0.0) for each in (batch, twice))
    torch.testing.assert_close(one.total / one.count, two.total / two.count)


def test_a_cost_that_a_model_without_experts_does_not_have_is_refused():
    model = Model(build(Transformer), build(Decoder)).double()
    with pytest.raises(
        SeqloomError, match=r"objective\.costs\.load: no part of this model has such a cost; it has none"
    ):
        CrossEntropy(costs={"load": 1.0})(model, batch_of(), 0.0)
