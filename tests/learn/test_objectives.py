"""Objectives learn: from scratch as cross-entropy does, and from a model that is half trained to a better one."""

from typing import Any

import pytest

from tests.learn.tiny import lstm, words

pairs = [(word, word[::-1]) for word in words(1700, range(3, 7))]
train, test = pairs[:1500], pairs[1500:]


def recipe(objective: dict[str, Any], steps: int, **top: Any) -> dict[str, Any]:
    chosen = lstm(steps, tokens=512)
    chosen["train"] |= {"select_by": "exact", "learning_rate": 3e-3 if top else 1e-2, "warmup": 5}
    chosen["search"] |= {"rank_by": "last"} if objective["type"] == "margin" else {}
    return {**chosen, **top, "objective": objective}


@pytest.mark.parametrize(
    "objective",
    [
        {"type": "scheduled_sampling"},
        {"type": "dad", "least": 0.5},
        {"type": "end_to_end", "wait": 0.5},
        {"type": "raml", "temperature": 0.5},
    ],
    ids=lambda objective: objective["type"],
)
def test_targets_are_learned_from_scratch(learn, objective):
    assert learn(recipe(objective, 160), train).evaluate(test)["exact"] >= 60


@pytest.fixture(scope="module")
def begun(learn):
    return learn(recipe({"type": "cross_entropy"}, 70), train)


@pytest.mark.parametrize(
    "objective",
    [
        {"type": "expected_reward"},
        {"type": "minimum_risk", "samples": 5, "sharpness": 0.5},
        {"type": "mixer"},
        {"type": "margin", "beam_size": 3},
    ],
    ids=lambda objective: objective["type"],
)
def test_outputs_get_better_from_where_cross_entropy_stopped(learn, begun, objective):
    before = begun.evaluate(test)["exact"]
    steps = 150 if objective["type"] == "mixer" else 60  # it anneals, and draws one output a source
    after = learn(recipe(objective, steps, init=str(begun.path)), train).evaluate(test)["exact"]
    assert before < 80
    assert after >= before + 3


def test_without_a_start_expected_reward_learns_next_to_nothing(learn):
    assert learn(recipe({"type": "expected_reward", "reward": "exact"}, 60), train).evaluate(test)["exact"] <= 15
