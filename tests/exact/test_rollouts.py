"""The original data as demonstrator: what earlier rounds wrote, paired by time with the targets, is data too."""

from copy import deepcopy

import pytest
import torch
from torch.nn.functional import cross_entropy

from seqloom.objectives import rollouts
from seqloom.objectives.cross_entropy import CrossEntropy
from seqloom.objectives.rollouts import Rollouts
from tests.exact import toy
from tests.exact.test_scheduled_sampling import unrolled
from tests.exact.toy import gradients, kinds

TARGETS = ((4, 5, 5, 4), (5,), (5, 4, 4))


def changed(model, seed=5):
    """Other weights, in place."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter))


def demonstrated(model, past, batch):
    """The loss of a model after what another wrote, row by row, the target's token of the same step expected."""
    given = torch.zeros_like(batch.inputs.values, dtype=torch.bool)
    fed, _ = unrolled(past, batch, given, batch.inputs.values.shape[1])
    total = 0.0
    for row, length in enumerate(batch.inputs.lengths.tolist()):
        memory = model.encode(batch.source).select(torch.tensor([row]))
        state = model.decoder.start(memory)
        for time in range(length):
            logits, state = model.decoder.step(fed[row, time][None], state, memory)
            total = total + cross_entropy(logits, batch.targets.values[row, time][None])
    return total


def draw(monkeypatch, number):
    monkeypatch.setattr(rollouts.torch, "randint", lambda *_: torch.tensor(number))


@kinds
def test_in_the_first_part_it_is_teacher_forcing_to_the_last_bit(kind):
    model, batch = toy.model(kind), toy.batch(TARGETS)
    objective = Rollouts(rounds=1)
    for progress in (0.0, 0.49):
        assert objective(model, batch, progress).total.item() == CrossEntropy()(model, batch, progress).total.item()
    assert not objective.past


@kinds
def test_then_the_inputs_are_what_the_model_wrote_at_the_beginning_of_each_round(kind, monkeypatch):
    model, batch = toy.model(kind), toy.batch(TARGETS)
    objective = Rollouts(rounds=2)
    objective(model, batch, 0.1)
    objective(model, batch, 0.34)
    first = deepcopy(model)
    changed(model)
    objective(model, batch, 0.5)
    objective(model, batch, 0.67)
    second = deepcopy(model)
    changed(model, seed=6)
    assert len(objective.past) == 2
    for number, past in ((1, first), (2, second)):
        draw(monkeypatch, number)
        ours, wanted = objective(model, batch, 0.9).total, demonstrated(model, past, batch)
        monkeypatch.undo()
        torch.testing.assert_close(ours, wanted, rtol=1e-10, atol=0)
        for one, other in zip(gradients(ours, model), gradients(wanted, model)):
            torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-12)
    draw(monkeypatch, 0)
    assert objective(model, batch, 0.9).total.item() == CrossEntropy()(model, batch, 0.9).total.item()


def test_the_data_and_the_outputs_of_all_rounds_are_drawn_equally_often():
    model, batch = toy.model("recurrent"), toy.batch(TARGETS)
    objective = Rollouts(rounds=2)
    objective(model, batch, 0.34)
    changed(model)
    objective(model, batch, 0.67)
    changed(model, seed=6)
    torch.manual_seed(1)
    losses = [objective(model, batch, 1.0).total.item() for _ in range(300)]
    assert len(objective.past) == 2
    counts = [losses.count(loss) for loss in {*losses}]
    assert len(counts) == 3
    assert min(counts) > 70


def test_the_model_keeps_its_weights_and_its_mode():
    model, batch = toy.model("recurrent"), toy.batch(TARGETS)
    objective = Rollouts(rounds=1)
    objective(model, batch, 0.5)
    changed(model)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    objective.write(model, batch, objective.past[0])
    assert model.training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert not list(objective.parameters())  # what is kept is not trained


def test_what_is_kept_is_stored_and_found_again():
    model, batch = toy.model("recurrent"), toy.batch(TARGETS)
    first, second = Rollouts(rounds=3), Rollouts(rounds=3)
    for progress in (0.25, 0.5):
        first(model, batch, progress)
        changed(model)
    stored = first.state_dict()
    second.make_room({name: torch.zeros_like(value) for name, value in stored.items()})
    second.load_state_dict(stored)
    wanted = first.write(model, batch, first.past[1]).values
    assert torch.equal(second.write(model, batch, second.past[1]).values, wanted)
    second.make_room({"past.x.weight": torch.zeros(1), "other": torch.zeros(1)})
    assert not second.past


def test_impossible_settings_are_refused():
    with pytest.raises(ValueError, match="rounds = 0"):
        Rollouts(rounds=0)
