"""The state of a training as a checkpoint stores it: read back, or refused in one line that names the value."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from seqloom.config.settings import Settings
from seqloom.errors import SeqloomError
from seqloom.train.optimiser import NamedOptimiser
from seqloom.train.state import Budget, TrainingState


def stored() -> dict[str, Any]:
    best: Any = [{"step": 3, "value": 0.5, "results": {"loss": 1.0, "exact": 3}}]
    budget = Budget(minutes=1.0, preparation=2.0, validation=3.0, longest=4)
    return asdict(TrainingState(step=5, seconds=1.5, best=best, window={"total": math.nan}, budget=budget))


def test_it_is_read_back() -> None:
    state = TrainingState()
    state.restore(stored(), "trainer.json: standing")
    assert (state.step, state.seconds, state.best[0]["results"]["exact"]) == (5, 1.5, 3)
    assert isinstance(state.budget, Budget)
    assert state.budget.longest == 4
    assert math.isnan(state.window["total"])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("step", "5"), ("step", 5.5), ("step", -1), ("step", None), ("step", True), ("epoch", []), ("unknown", 1)),
        *(("seconds", math.nan), ("seconds", "x"), ("best", {}), ("best", [1]), ("best", [{"step": 1}])),
        *(("best", [{"step": 1, "value": "x", "results": {}}]), ("best", [{"step": 1, "value": 1, "results": []}])),
        *(("window", []), ("window", {"total": "x"}), ("budget", 3), ("budget", {"minutes": 1})),
    ],
)
def test_values_of_other_types_are_named(name: str, value: Any) -> None:
    state = TrainingState()
    with pytest.raises(SeqloomError, match=rf"^trainer\.json: standing\.{name} = "):
        state.restore({**stored(), name: value}, "trainer.json: standing")
    assert state == TrainingState()


@pytest.mark.parametrize("standing", [None, [], 3, "x"])
def test_no_state_at_all(standing: Any) -> None:
    with pytest.raises(SeqloomError, match="expected an object"):
        TrainingState().restore(standing, "trainer.json: standing")


ONES, NUMBER = torch.ones(2, 2), torch.tensor(1.0)
COMPLETE = {"weight/step": NUMBER, "weight/exp_avg": ONES, "weight/exp_avg_sq": ONES}


def load(tensors: dict[str, Tensor], scalars: Any = None, optimiser: Any = "adam") -> None:
    updater = NamedOptimiser(nn.Linear(2, 2), Settings(optimiser=optimiser))
    updater.load(tensors, scalars or {}, "optimiser.safetensors")
    for parameter in updater.parameters:
        parameter.grad = torch.zeros_like(parameter)
    updater.step(0.1)


def test_a_complete_state_of_an_optimiser_works() -> None:
    load(COMPLETE)
    load({name: value for name, value in COMPLETE.items() if name != "weight/step"}, {"weight/step": 3})
    load({"weight/momentum_buffer": ONES}, optimiser="sgd")


@pytest.mark.parametrize(
    ("tensors", "scalars"),
    [
        ({"weight": ONES}, {}),
        ({"other/exp_avg": ONES}, {}),
        ({**COMPLETE, "weight/step": ONES}, {}),
        ({**COMPLETE, "weight/step": torch.tensor(1)}, {}),
        ({**COMPLETE, "weight/step": torch.tensor(-1.0)}, {}),
        ({**COMPLETE, "weight/exp_avg": NUMBER}, {}),
        ({**COMPLETE, "weight/exp_avg": ONES.long()}, {}),
        ({**COMPLETE, "weight/exp_avg": torch.ones(3, 2)}, {}),
        ({**COMPLETE, "weight/extra": ONES}, {}),
        ({"weight/exp_avg": ONES}, {}),
        (COMPLETE, {"weight/step": "3"}),
        (COMPLETE, {"weight/step": None}),
        (COMPLETE, {"weight/step": math.nan}),
        (COMPLETE, {"weight/exp_avg": [1]}),
    ],
)
def test_another_state_of_an_optimiser_is_named(tensors: dict[str, Tensor], scalars: dict[str, Any]) -> None:
    with pytest.raises(SeqloomError, match=r"^optimiser\.safetensors: "):
        load(tensors, scalars)
