"""Parity, cut to seconds: thinking more than once finds it, one step does not, and a price makes thoughts shorter."""

import copy

import pytest
import torch

from seqloom.config.recipes import read_recipe
from seqloom.data.generators.parity import parity
from seqloom.types import Padded

pairs = [(example.source, example.target) for example in parity(20_000, size=12, most=3)]
train, test = pairs[:-500], pairs[-500:]


def recipe(**cell):
    made = copy.deepcopy(read_recipe("parity"))
    made["encoder"]["cell"] |= cell
    made["train"] |= {"steps": 600, "learning_rate": 5e-3, "validate_every": 10_000, "device": "cpu"}
    return made


@pytest.fixture(scope="module")
def thinking(learn):
    return learn(recipe(), train)


def steps(model, pairs):
    read = Padded.stack([model.task.source.read(source) for source, _ in pairs])
    with torch.no_grad():
        return model.model.encode(read.to("cpu")).extra["cost"]["steps"].mean().item()


def test_parity_is_found_by_thinking(thinking):
    assert thinking.evaluate(test)["exact"] >= 95
    assert steps(thinking, test) > 1.5


def test_one_step_is_not_enough(learn, thinking):
    """Most of these vectors are easy, so it is errors that tell."""
    several, one = (100 - model.evaluate(test)["exact"] for model in (thinking, learn(recipe(most=1), train)))
    assert one >= 2 * several + 1


def test_a_price_makes_thoughts_shorter(learn, thinking):
    dear = recipe()
    dear["objective"]["costs"] = {"ponder": 0.3}
    dear["train"]["steps"] = 150
    assert steps(learn(dear, train), test) < steps(thinking, test) - 0.5
