"""What holds for every objective that compares tokens and trains every kind of decoder, with each."""

import copy

import numpy as np
import pytest
import torch

from seqloom.objectives.cross_entropy import CrossEntropy
from tests.building import objectives_of_any_decoder
from tests.exact import toy

OBJECTIVES = objectives_of_any_decoder()
TARGETS = ((4, 5, 5, 4), (5,), (5, 4, 4))


@pytest.fixture(params=OBJECTIVES)
def objective(request):
    """With what the program would give it, and its defaults."""
    return copy.deepcopy(OBJECTIVES[request.param])


@pytest.fixture(params=[*toy.KINDS, *toy.FURTHER])
def model(request):
    return toy.model(request.param)


def trained(objective, model, batch, progress=0.6):
    """The loss of a batch as training computes it."""
    batch = objective.prepare(batch, np.random.default_rng(1))
    torch.manual_seed(1)
    return objective(model, batch, progress)


def test_the_same_random_numbers_give_the_same_loss_and_every_weight_learns(objective, model):
    first, second = (trained(objective, model, toy.batch(TARGETS)) for _ in range(2))
    assert first.total.item() == second.total.item()
    assert first.total.isfinite()
    assert first.count > 0
    learned = dict(model.named_parameters())
    found = torch.autograd.grad(first.total, list(learned.values()), allow_unused=True)
    assert not [name for name, gradient in zip(learned, found) if gradient is None or not gradient.isfinite().all()]
    assert any(gradient.abs().sum() > 0 for gradient in found)


def test_a_step_against_the_gradient_lowers_the_loss(objective, model):
    """With the same random numbers, for whatever is drawn; a step too small to draw anything else."""
    if list(objective.parameters()):
        pytest.skip("what it learns itself gives the model no gradient, on purpose")
    batch = toy.batch(TARGETS)
    before = trained(objective, model, batch)
    parameters = list(model.parameters())
    gradients = torch.autograd.grad(before.total, parameters)
    size = sum(gradient.square().sum() for gradient in gradients).item()
    with torch.no_grad():
        for parameter, gradient in zip(parameters, gradients):
            parameter.sub_(1e-6 * gradient)
    after = trained(objective, model, batch)
    assert (before.total - after.total).item() == pytest.approx(1e-6 * size, rel=1e-2)


def test_a_validation_is_the_cross_entropy_of_the_targets(objective, model):
    batch = toy.batch(TARGETS)
    ours, theirs = objective.eval()(model, batch, 0.3), CrossEntropy().eval()(model, batch, 0.3)
    assert ours.total.item() == theirs.total.item()
    assert ours.count == theirs.count
    assert ours.logs["nll"] == theirs.logs["nll"]


def test_what_is_prepared_depends_on_the_given_random_numbers_alone(objective):
    batch = toy.batch(TARGETS)
    torch.manual_seed(1)
    first = objective.prepare(batch, np.random.default_rng(3))
    torch.manual_seed(2)
    second = objective.prepare(batch, np.random.default_rng(3))
    assert torch.equal(first.targets.values, second.targets.values)
    assert torch.equal(first.inputs.values, second.inputs.values)


def test_it_works_in_half_precision(objective, model):
    with torch.autocast("cpu", torch.bfloat16):
        loss = trained(objective.float(), model.float(), toy.batch(TARGETS))
    loss.total.backward()
    assert loss.total.dtype == torch.float32
    assert all(parameter.grad is None or parameter.grad.isfinite().all() for parameter in model.parameters())


def test_nothing_is_left_behind_in_the_model(objective, model):
    before = {name: value.clone() for name, value in model.state_dict().items()}
    trained(objective, model, toy.batch(TARGETS))
    assert model.training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
