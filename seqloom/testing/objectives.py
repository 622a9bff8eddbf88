"""What holds for every objective that compares tokens and trains every kind of decoder."""

from __future__ import annotations

import math

import numpy as np
import torch

from seqloom.contracts import Objective
from seqloom.nn.model import Model
from seqloom.objectives.cross_entropy import CrossEntropy
from seqloom.testing.claims import NotAsked, require, require_gradients
from seqloom.testing.models import small_batch
from seqloom.types import Batch, Loss

TARGETS = ((4, 5, 5, 4), (5,), (5, 4, 4))


def the_same_random_numbers_give_the_same_loss_and_every_weight_learns(objective: Objective, model: Model) -> None:
    first, second = (_trained(objective, model, small_batch(TARGETS)) for _ in range(2))
    require(
        first.total.item() == second.total.item(), "the loss differs between two calls with the same random numbers"
    )
    require(first.total.isfinite(), f"the loss is {first.total.item()}")
    require(first.count > 0, f"Loss.count is {float(first.count)}: it must count what the loss is a sum over")
    first.total.backward()
    require_gradients(model)


def a_step_against_the_gradient_lowers_the_loss(objective: Objective, model: Model) -> None:
    """With the same random numbers, for whatever is drawn; a step too small to draw anything else."""
    if list(objective.parameters()):
        raise NotAsked("what it learns itself gives the model no gradient, on purpose")
    batch = small_batch(TARGETS)
    before = _trained(objective, model, batch)
    parameters = list(model.parameters())
    gradients = torch.autograd.grad(before.total, parameters)
    size = sum(gradient.square().sum().item() for gradient in gradients)
    with torch.no_grad():
        for parameter, gradient in zip(parameters, gradients):
            parameter.sub_(1e-6 * gradient)
    gain = (before.total - _trained(objective, model, batch).total).item()
    wrong = f"a step of 1e-6 against the gradient lowers the loss by {gain:.3g}, not by {1e-6 * size:.3g}"
    require(math.isclose(gain, 1e-6 * size, rel_tol=1e-2, abs_tol=1e-12), f"{wrong}: is Loss.total detached somewhere?")


def a_validation_is_the_cross_entropy_of_the_targets(objective: Objective, model: Model) -> None:
    batch = small_batch(TARGETS)
    ours, theirs = objective.eval()(model, batch, 0.3), CrossEntropy().eval()(model, batch, 0.3)
    wrong = f"after eval() the loss is {ours.total.item():.6g}, not the cross-entropy {theirs.total.item():.6g}"
    same = math.isclose(ours.total.item(), theirs.total.item(), rel_tol=1e-12)  # a sum in another order
    require(same, f"{wrong}: runs could not be compared")
    require(ours.count == theirs.count, f"after eval() Loss.count is {ours.count}, not {theirs.count} tokens")
    require(
        "nll" in ours.logs and ours.logs["nll"] == theirs.logs["nll"],
        'after eval() logs["nll"] is not the cross-entropy',
    )


def what_is_prepared_depends_on_the_given_random_numbers_alone(objective: Objective) -> None:
    batch = small_batch(TARGETS)
    torch.manual_seed(1)
    first = objective.prepare(batch, np.random.default_rng(3))
    torch.manual_seed(2)
    second = objective.prepare(batch, np.random.default_rng(3))
    wrong = "prepare() draws from elsewhere than the generator it is given: a resumed training would differ"
    require(torch.equal(first.targets.values, second.targets.values), wrong)
    require(torch.equal(first.inputs.values, second.inputs.values), wrong)


def it_works_in_half_precision(objective: Objective, model: Model) -> None:
    with torch.autocast("cpu", torch.bfloat16):
        loss = _trained(objective.float(), model.float(), small_batch(TARGETS))
    loss.total.backward()
    require(loss.total.dtype == torch.float32, f"under bfloat16 autocast the loss is {loss.total.dtype}, not float32")
    finite = all(parameter.grad is None or parameter.grad.isfinite().all() for parameter in model.parameters())
    require(finite, "under bfloat16 autocast some gradients are not finite")


def nothing_is_left_behind_in_the_model(objective: Objective, model: Model) -> None:
    before = {name: value.clone() for name, value in model.state_dict().items()}
    _trained(objective, model, small_batch(TARGETS))
    require(model.training, "the model is left in evaluation mode")
    changed = [name for name, value in model.state_dict().items() if not torch.equal(value, before[name])]
    require(not changed, f"computing the loss changes {', '.join(changed)}")


def _trained(objective: Objective, model: Model, batch: Batch, progress: float = 0.6) -> Loss:
    """The loss of a batch as training computes it."""
    batch = objective.prepare(batch, np.random.default_rng(1))
    torch.manual_seed(1)
    loss: Loss = objective(model, batch, progress)
    return loss
