"""Objectives learn: some from scratch as cross-entropy does, others improve a model that is half trained."""

from typing import Any

import pytest

from tests.learn.tiny import lstm, words

pairs = [(word, word[::-1]) for word in words(1700, range(3, 6))]
train, test = pairs[:1500], pairs[1500:]
REWARD = {"type": "expected_reward", "reward": "exact"}


def recipe(objective: dict[str, Any], steps: int, *, tokens: int = 256, **top: Any) -> dict[str, Any]:
    made = lstm(steps, tokens=tokens)
    made["train"] |= {"select_by": "exact", "warmup": 5}
    return {**made, **top, "objective": objective}


@pytest.mark.parametrize(
    "objective",
    [
        {"type": "scheduled_sampling"},
        {"type": "dad", "least": 0.5},
        {"type": "rollouts", "rounds": 2},
        {"type": "end_to_end", "wait": 0.5},
        {"type": "raml", "temperature": 0.5},
    ],
    ids=lambda objective: objective["type"],
)
def test_objective_learns_from_scratch(learn, objective):
    assert learn(recipe(objective, 140), train).evaluate(test)["exact"] >= 60


@pytest.fixture(scope="module")
def half_trained(learn):
    return learn(recipe({"type": "cross_entropy"}, 60, tokens=512), train)


@pytest.mark.parametrize(
    ("objective", "steps", "learning_rate"),
    [
        (REWARD, 80, 3e-3),
        ({"type": "minimum_risk", "samples": 5, "sharpness": 0.5}, 80, 3e-3),
        ({"type": "mixer"}, 120, 3e-3),  # anneals, with one sample per source
        ({"type": "margin", "beam_size": 3}, 80, 1.5e-3),
    ],
    ids=["expected_reward", "minimum_risk", "mixer", "margin"],
)
def test_objective_improves_a_half_trained_model(learn, half_trained, objective, steps, learning_rate):
    before = half_trained.evaluate(test)["exact"]
    made = recipe(objective, steps, init=str(half_trained.path))
    made["train"]["learning_rate"] = learning_rate
    if objective["type"] == "margin":
        made["search"]["rank_by"] = "last"
    assert learn(made, train).evaluate(test)["exact"] >= before + 10


def test_expected_reward_learns_nothing_from_scratch(learn):
    assert learn(recipe(REWARD, 80), train).evaluate(test)["exact"] <= 20
