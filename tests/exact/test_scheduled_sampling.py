"""Scheduled sampling, DAD and end-to-end back-propagation against their definitions."""

import math

import pytest
import torch
from torch.nn.functional import cross_entropy

from seqloom.objectives.annealing import Annealing
from seqloom.objectives.cross_entropy import CrossEntropy
from seqloom.objectives.dad import DataAsDemonstrator
from seqloom.objectives.end_to_end import EndToEnd
from seqloom.objectives.scheduled_sampling import ScheduledSampling
from tests.exact import toy
from tests.exact.toy import BOS, EOS, VOCABULARY, gradients, kinds

TARGETS = ((4, 5, 5, 4), (5,), (5, 4, 4))


def never(**settings):
    """No input is the target's token, at any progress."""
    return ScheduledSampling(decay="linear", first=0.0, **settings)


def unrolled(model, batch, given, longest):
    """Row by row, token by token: the inputs of an argmax decoder, and its scores."""
    rows, scored = [], []
    for row, length in enumerate(batch.inputs.lengths.tolist()):
        one = torch.tensor([row])
        memory = model.encode(batch.source).select(one)
        state, token, fed, scores = model.decoder.start(memory), torch.tensor([BOS]), [], []
        for time in range(length):
            if time and given[row, time]:
                token = batch.inputs.values[row, time][None]
            fed.append(int(token))
            logits, state = model.decoder.step(token, state, memory)
            scores.append(logits[0])
            token = logits.argmax(dim=1)
        rows.append(fed + [0] * (longest - length))
        scored.append(torch.stack(scores))
    return torch.tensor(rows), scored


@pytest.mark.parametrize(
    ("settings", "values"),
    [
        ({"decay": "linear", "rate": 0.02, "least": 0.25}, {0.0: 1.0, 0.1: 0.8, 0.25: 0.5, 0.5: 0.25, 1.0: 0.25}),
        ({"decay": "linear", "rate": 0.01, "first": 0.9}, {0.0: 0.9, 0.5: 0.4, 0.95: 0.0}),
        ({"decay": "exponential", "rate": 0.9}, {0.0: 1.0, 0.01: 0.9, 0.03: 0.729}),
        (
            {"decay": "inverse_sigmoid", "rate": 10.0},
            {0.0: 10 / 11, 0.1: 10 / (10 + math.e), 0.5: 10 / (10 + math.exp(5)), 1.0: 10 / (10 + math.exp(10))},
        ),
    ],
)
def test_decays_have_the_values_of_their_formulas(settings, values):
    objective = ScheduledSampling(**settings)
    for progress, value in values.items():
        assert objective.epsilon(progress) == pytest.approx(value, abs=1e-12)


@kinds
@pytest.mark.parametrize("form", ["steps", "two_passes"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_with_epsilon_1_it_is_teacher_forcing_to_the_last_bit(kind, form, smoothing):
    model, batch = toy.model(kind), toy.batch(TARGETS)
    always = ScheduledSampling(decay="linear", rate=0.0, form=form, label_smoothing=smoothing)
    ours, theirs = always(model, batch, 0.7), CrossEntropy(label_smoothing=smoothing)(model, batch, 0.7)
    assert ours.total.item() == theirs.total.item()
    assert ours.count == theirs.count
    for one, other in zip(gradients(ours.total, model), gradients(theirs.total, model)):
        assert torch.equal(one, other)


@kinds
def test_with_epsilon_0_the_inputs_are_those_of_a_free_run(kind):
    model, batch = toy.model(kind), toy.batch(TARGETS)
    given = torch.zeros_like(batch.inputs.values, dtype=torch.bool)
    given[:, 0] = True
    objective = never(choose="argmax", form="steps")
    inputs = objective.mix_inputs(model.decoder, model.encode(batch.source), batch, given)
    expected, scores = unrolled(model, batch, given, inputs.values.shape[1])
    assert torch.equal(inputs.values * inputs.mask, expected)
    ours = objective(model, batch, 0.0)
    wanted = sum(
        cross_entropy(rows, batch.targets.values[row, : len(rows)], reduction="sum") for row, rows in enumerate(scores)
    )
    torch.testing.assert_close(ours.total, wanted, rtol=1e-10, atol=0)
    for one, other in zip(gradients(ours.total, model), gradients(wanted, model)):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-12)


@kinds
def test_inputs_are_a_random_mixture_of_the_targets_tokens_and_the_models(kind):
    model, batch = toy.model(kind), toy.batch(TARGETS)
    torch.manual_seed(3)
    given = torch.rand(batch.inputs.values.shape) < 0.5
    given[:, 0] = True
    inputs = DataAsDemonstrator(form="steps").mix_inputs(model.decoder, model.encode(batch.source), batch, given)
    expected, _ = unrolled(model, batch, given, inputs.values.shape[1])
    assert torch.equal(inputs.values * inputs.mask, expected)


@kinds
def test_two_passes_choose_after_the_targets_tokens(kind):
    model, batch = toy.model(kind), toy.batch(TARGETS)
    given = torch.zeros_like(batch.inputs.values, dtype=torch.bool)
    given[:, 0] = True
    inputs = never(choose="argmax", form="two_passes").mix_inputs(
        model.decoder, model.encode(batch.source), batch, given
    )
    predicted = model(batch).scores.argmax(dim=-1)
    assert torch.equal(inputs.values[:, 1:], predicted[:, :-1])


def test_by_default_transformers_take_two_passes_and_recurrent_decoders_steps(monkeypatch):
    for kind, stepped in (("recurrent", True), ("transformer", False)):
        model, batch, calls = toy.model(kind), toy.batch(TARGETS), []
        step = model.decoder.step
        monkeypatch.setattr(model.decoder, "step", lambda *arguments: calls.append(1) or step(*arguments))  # noqa: B023
        never()(model, batch, 0.0)
        assert bool(calls) == stepped


def test_the_share_of_given_tokens_is_epsilon():
    seen = []

    class Watching(ScheduledSampling):
        def mix_inputs(self, decoder, memory, batch, given):
            seen.append(given)
            return batch.inputs

    model, batch = toy.model("recurrent"), toy.batch(((4,) * 400,))
    objective = Watching(decay="linear", rate=0.01)
    for _ in range(25):
        objective(model, batch, 0.3)
    given = torch.stack(seen)
    assert given[:, :, 0].all()
    share = given[:, :, 1:].double().mean().item()
    assert share == pytest.approx(0.7, abs=4 * math.sqrt(0.7 * 0.3 / 10_000))


def test_samples_are_drawn_with_the_models_probabilities():
    scores = torch.randn(VOCABULARY, dtype=torch.float64).expand(60_000, 1, VOCABULARY)
    chosen = ScheduledSampling().choose_tokens(scores)
    assert chosen.shape == (60_000, 1)
    shares = torch.bincount(chosen[:, 0], minlength=VOCABULARY) / 60_000
    torch.testing.assert_close(shares.double(), torch.softmax(scores[0, 0], dim=-1), atol=0.01, rtol=0)


def test_a_validation_is_plain_cross_entropy():
    model, batch = toy.model("recurrent"), toy.batch(TARGETS)
    for objective in (never(), DataAsDemonstrator(), EndToEnd()):
        assert objective.eval()(model, batch, 1.0).total == CrossEntropy()(model, batch, 1.0).total


# -- end to end


def test_the_annealing_goes_down_by_delta_in_equal_stages():
    annealing = Annealing(delta=3, wait=0.25, longest=7)
    table = {0.0: 9, 0.2: 9, 0.25: 4, 0.49: 4, 0.5: 1, 0.74: 1, 0.75: 0, 1.0: 0}  # a batch may hold longer ones: 9
    assert {progress: annealing.given(progress, 9) for progress in table} == table
    by_batch = Annealing(delta=2, wait=0.0, longest=0)
    assert [by_batch.given(progress, 5) for progress in (0.0, 0.34, 0.67, 1.0)] == [3, 1, 0, 0]


@kinds
@pytest.mark.parametrize("top_k", [1, 3, VOCABULARY])
@pytest.mark.parametrize(("progress", "given"), [(0.0, 4), (0.5, 2), (1.0, 1)])
def test_end_to_end_is_fed_the_mean_of_its_predictions(kind, top_k, progress, given):
    """Restated row by row: embeddings are looked up, weighted, and take the place of the next token's."""
    model, batch = toy.model(kind), toy.batch(TARGETS)
    ours = EndToEnd(top_k=top_k, delta=2, longest=5)(model, batch, progress)
    table, wanted = model.decoder.embedding.weight, 0.0
    for row, length in enumerate(batch.inputs.lengths.tolist()):
        memory = model.encode(batch.source).select(torch.tensor([row]))
        state = model.decoder.start(memory)
        for time in range(length):
            if time < given:
                token = batch.inputs.values[row, time][None]
                logits, state = model.decoder.step(token, state, memory)
            else:
                best = sorted(range(VOCABULARY), key=lambda token: -logits[0, token].item())[:top_k]
                total = sum(logits[0, token].exp() for token in best)
                mean = sum(logits[0, token].exp() / total * table[token] for token in best)
                logits, state = step_with(model.decoder, mean, state, memory)
            wanted = wanted + cross_entropy(logits, batch.targets.values[row, time][None])
    torch.testing.assert_close(ours.total, wanted, rtol=1e-10, atol=0)
    for one, other in zip(gradients(ours.total, model), gradients(wanted, model)):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-12)


def step_with(decoder, vector, state, memory):
    """A step in which every token has this vector as its embedding."""

    class Fixed(torch.nn.Embedding):
        def forward(self, tokens):
            return vector.expand(*tokens.shape, -1)

    table = decoder.embedding
    decoder.embedding = Fixed(*table.weight.shape)
    decoder.embedding.weight = table.weight
    try:
        return decoder.step(torch.tensor([EOS]), state, memory)
    finally:
        decoder.embedding = table


def test_invalid_settings_are_refused():
    for wrong in ({"least": 0.5, "first": 0.2}, {"decay": "exponential", "rate": 2.0}, {"rate": 0.5}):
        with pytest.raises(ValueError, match="must be"):
            ScheduledSampling(**wrong)
    with pytest.raises(ValueError, match="top_k"):
        EndToEnd(top_k=0)
    with pytest.raises(ValueError, match="delta"):
        EndToEnd(delta=0)
