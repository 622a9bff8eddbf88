"""An update against its equations: Adam, AdamW, momentum, weight decay, clipping; and the moving average of weights."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from seqloom.config.settings import Settings
from seqloom.errors import SeqloomError
from seqloom.storage.weights import weights_of
from seqloom.train.averaging import MovingAverage
from seqloom.train.optimiser import NamedOptimiser
from tests.train.test_trainer import Tiny, tiny_run, trainer

OPTIMISERS = ["adamw", "adam", "sgd"]
RATE, DECAY, BETAS, MOMENTUM = 0.1, 0.3, (0.5, 0.8), 0.6


def module() -> nn.Linear:
    """A matrix and a bias, neither of them zero."""
    made = nn.Linear(3, 2).double()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for value in made.parameters():
            value.copy_(torch.randn(value.shape, generator=generator))
    return made


def optimiser_of(trained: nn.Module, **changes: Any) -> NamedOptimiser:
    return NamedOptimiser(trained, Settings(**{"betas": BETAS, "momentum": MOMENTUM, "learning_rate": 9.0, **changes}))


def by_hand(kind: str, value: Tensor, gradients: list[Tensor], decay: float) -> Tensor:
    """Kingma & Ba 2015, algorithm 1; Loshchilov & Hutter 2019, algorithm 2; stochastic gradient descent."""
    first = second = velocity = torch.zeros_like(value)
    for step, gradient in enumerate(gradients, 1):
        if kind == "adamw":
            value = value - RATE * decay * value
        else:
            gradient = gradient + decay * value
        if kind == "sgd":
            velocity = gradient if step == 1 else MOMENTUM * velocity + gradient
            value = value - RATE * velocity
            continue
        first = BETAS[0] * first + (1 - BETAS[0]) * gradient
        second = BETAS[1] * second + (1 - BETAS[1]) * gradient**2
        mean, spread = first / (1 - BETAS[0] ** step), second / (1 - BETAS[1] ** step)
        value = value - RATE * mean / (spread.sqrt() + 1e-8)
    return value


@pytest.mark.parametrize("kind", OPTIMISERS)
def test_updates_follow_the_equations_and_biases_do_not_decay(kind: str) -> None:
    trained = module()
    optimiser = optimiser_of(trained, optimiser=kind, weight_decay=DECAY)
    generator = torch.Generator().manual_seed(2)
    before = {name: value.detach().clone() for name, value in trained.named_parameters()}
    gradients: dict[str, list[Tensor]] = {
        name: [torch.randn(value.shape, generator=generator, dtype=value.dtype) for _ in range(4)]
        for name, value in before.items()
    }
    for step in range(4):
        for name, value in trained.named_parameters():
            value.grad = gradients[name][step].clone()
        optimiser.step(RATE)
    for name, value in trained.named_parameters():
        decay = DECAY if name == "weight" else 0.0
        torch.testing.assert_close(value.detach(), by_hand(kind, before[name], gradients[name], decay))


def test_a_model_of_vectors_alone_can_be_trained_and_one_without_parameters_cannot() -> None:
    normalise = nn.LayerNorm(4)
    optimiser = optimiser_of(normalise, weight_decay=DECAY)
    for value in normalise.parameters():
        value.grad = torch.zeros_like(value)
    optimiser.step(RATE)
    assert (normalise.weight == 1).all()
    with pytest.raises(SeqloomError, match="every one is frozen"):
        optimiser_of(nn.LayerNorm(4).requires_grad_(False))


class Judged(nn.Module):
    """A model, and a parameter of the objective."""

    def __init__(self) -> None:
        super().__init__()
        self.model, self.objective = module(), nn.Linear(1, 1).double()
        self.model.weight.grad = torch.tensor([[3.0, 0.0, 0.0], [0.0, 0.0, 0.0]], dtype=torch.float64)
        self.model.bias.grad = torch.tensor([0.0, 4.0], dtype=torch.float64)
        self.objective.weight.grad = torch.full((1, 1), 600.0, dtype=torch.float64)
        self.objective.bias.grad = torch.full((1,), 800.0, dtype=torch.float64)

    def norms(self) -> tuple[float, float]:
        """Of the gradients of the model, and of the objective."""
        return tuple(  # type: ignore[return-value]
            math.sqrt(sum(float(value.grad.square().sum()) for value in part.parameters()))  # type: ignore[union-attr]
            for part in (self.model, self.objective)
        )


@pytest.mark.parametrize(
    ("scale", "clip", "model", "objective"),
    [(1.0, 1.0, 1.0, 1.0), (1.0, 5.5, 5.0, 5.5), (0.1, 1.0, 0.5, 1.0), (2.0, 0.0, 10.0, 2000.0)],
)
def test_gradients_are_scaled_and_then_clipped_to_a_norm(
    scale: float, clip: float, model: float, objective: float
) -> None:
    judged = Judged()
    assert optimiser_of(judged).scale_and_clip(scale, clip) == pytest.approx(5 * scale)
    assert judged.norms() == pytest.approx((model, objective), rel=1e-5)
    gradient = judged.model.weight.grad
    assert gradient is not None
    assert gradient[0, 0].item() == pytest.approx(0.6 * model, rel=1e-5)  # shorter, in the same direction


@pytest.mark.parametrize("part", ["model", "objective"])
def test_a_norm_that_is_not_finite_is_reported_and_clips_nothing(part: str) -> None:
    judged = Judged()
    spoiled = getattr(judged, part)
    spoiled.bias.grad[0] = math.inf
    assert math.isnan(optimiser_of(judged).scale_and_clip(1.0, 1.0))
    assert float(spoiled.weight.grad.abs().max()) == {"model": 3.0, "objective": 600.0}[part]


def flat(weights: Mapping[str, Tensor]) -> Tensor:
    return torch.cat([weights[name].flatten() for name in sorted(weights)])


def weights_after(path: Path, **changes: Any) -> Tensor:
    given: dict[str, Any] = {"optimiser": "sgd", "momentum": 0.0, "warmup": 0, "schedule": "constant"}
    trainer(path, steps=1, learning_rate=1.0, model=Tiny(0.0), **given, **changes).fit()
    newest = tiny_run(path).newest()
    assert newest is not None
    return flat(newest.model())


def test_a_training_clips_as_its_settings_say(tmp_path: Path) -> None:
    """With a learning rate of 1 the first step of gradient descent is the gradient."""
    start = flat(weights_of(Tiny(0.0)))
    whole, clipped, wide = (weights_after(tmp_path / str(clip), clip=clip) - start for clip in (0.0, 0.01, 100.0))
    assert whole.norm() > 0.05
    assert clipped.norm().item() == pytest.approx(0.01, rel=1e-3)
    torch.testing.assert_close(clipped / clipped.norm(), whole / whole.norm(), rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(wide, whole)


# -- the moving average


class Counted(nn.Linear):
    """Counts in a buffer of whole numbers, which have no average."""

    def __init__(self) -> None:
        super().__init__(2, 2)
        self.register_buffer("count", torch.tensor(0))


def filled(trained: Counted, value: float, count: int) -> None:
    with torch.no_grad():
        trained.weight.fill_(value)
        trained.bias.fill_(-value)
        trained.count.fill_(count)


def test_the_moving_average_follows_its_equation() -> None:
    """average <- decay * average + (1 - decay) * weights, the decay of step n being at most (1 + n) / (10 + n)."""
    trained = Counted()
    filled(trained, 1.0, 0)
    average, expected = MovingAverage(trained, 0.9), 1.0
    for step, value, decay in ((1, 3.0, 2 / 11), (2, -5.0, 3 / 12), (50, 2.0, 51 / 60), (500, 7.0, 0.9)):
        filled(trained, value, step)
        average.update(trained, step)
        expected = decay * expected + (1 - decay) * value
        assert average.weights["weight"].flatten().tolist() == pytest.approx([expected] * 4)
        assert average.weights["bias"].tolist() == pytest.approx([-expected] * 2)
        assert average.weights["count"].item() == step


def test_random_initial_weights_soon_fade_and_a_small_decay_stays_small() -> None:
    trained = Counted()
    filled(trained, 1.0, 0)
    slow, quick = MovingAverage(trained, 0.9999), MovingAverage(trained, 0.1)
    filled(trained, 0.0, 0)
    left = [1.0]
    for step in range(1, 21):
        slow.update(trained, step)
        left.append(slow.weights["weight"][0, 0].item())
    quick.update(trained, 20)
    assert all(after < before for before, after in pairwise(left))
    assert left[-1] < 1e-6  # 0.9999 ** 20 would be 0.998
    assert quick.weights["weight"][0, 0].item() == pytest.approx(0.1)


def test_within_a_block_the_module_has_the_average_and_then_its_own_weights_again() -> None:
    trained = Counted()
    filled(trained, 1.0, 0)
    average = MovingAverage(trained, 0.9)
    filled(trained, 5.0, 3)
    with average.applied(trained):
        assert (trained.weight == 1).all()
    assert (trained.weight == 5).all()
    with pytest.raises(RuntimeError, match="broken"), average.applied(trained):
        raise RuntimeError("broken")
    assert (trained.weight == 5).all()
