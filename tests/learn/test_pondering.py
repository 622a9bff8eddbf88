"""Parity, cut to seconds: adaptive computation time finds it, one step does not, and a price per step shortens it."""

import copy

import pytest
import torch

from seqloom.config.recipes import read_recipe
from seqloom.data.generators.parity import parity
from seqloom.types import Padded

MOST = 4


def pairs(count, **settings):
    return [(example.source, example.target) for example in parity(count, size=12, most=3, **settings)]


train, hardest = pairs(10_000), pairs(500, seed=2, fewest=3)


def recipe(most=MOST, steps=400, price=1e-4):
    made = copy.deepcopy(read_recipe("parity"))
    made["task"]["rows"] = 192
    made["encoder"] |= {"embedding_size": 48, "size": 48}
    made["encoder"]["cell"] |= {"cell": {"type": "elman"}, "most": most}
    made["objective"]["costs"] = {"ponder": price}
    made["train"] |= {"steps": steps, "learning_rate": 1e-2, "validate_every": 10_000, "device": "cpu"}
    return made


@pytest.fixture(scope="module")
def pondering(learn):
    return learn(recipe(), train)


def steps_taken(model):
    read = Padded.stack([model.task.source.read(source) for source, _ in hardest])
    with torch.no_grad():
        return model.model.encode(read.to("cpu")).costs["layers.0"]["steps"].mean().item()


def test_parity_is_learned_with_several_steps(pondering):
    assert pondering.evaluate(hardest)["exact"] >= 84
    assert steps_taken(pondering) > 2.5


def test_one_step_is_not_enough_for_parity(learn):
    assert learn(recipe(most=1), train).evaluate(hardest)["exact"] <= 80


def test_a_price_per_step_shortens_pondering(learn, pondering):
    assert steps_taken(learn(recipe(price=0.3, steps=100), train)) < steps_taken(pondering) - 1
