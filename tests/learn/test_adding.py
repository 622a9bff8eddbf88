"""The adding problem, cut to seconds: a sum is learned from marked numbers, and cannot be from unmarked ones."""

import pytest

from seqloom.config.recipes import read_recipe
from seqloom.data.generators.adding import adding

CONSTANT = 1 / 6  # the error of always answering 1
pairs = [(example.source, example.target) for example in adding(2200, length=16)]
train, test = pairs[:2000], pairs[2000:]
RECIPE = read_recipe("adding")
RECIPE["train"] |= {"steps": 200, "learning_rate": 1e-2, "schedule": "cosine", "tokens": 512}
RECIPE["train"] |= {"validate_every": 10_000, "device": "cpu"}


def test_lstm_learns_to_add_the_marked_numbers(learn):
    model = learn(RECIPE, train)
    assert model.evaluate(test)["mse"] <= CONSTANT / 4
    (answer,) = model.predict(["0.1,0 0.9,1 0.3,0 0.2,0 0.5,0 0.6,0 0.8,1 0.2,0"])
    assert answer == pytest.approx([1.7], abs=0.35)


def test_without_markers_little_is_learned_beyond_the_constant(learn):
    """All that is left to use is the sum of all numbers, which says little about two of them."""

    def unmarked(source):
        return source.replace(",1", ",0")

    model = learn(RECIPE, [(unmarked(source), target) for source, target in train])
    assert model.evaluate([(unmarked(source), target) for source, target in test])["mse"] >= CONSTANT / 2
