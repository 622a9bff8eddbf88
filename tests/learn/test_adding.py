"""The adding problem, cut to seconds: a sum is learned from marked numbers, and from unmarked ones it cannot be."""

import pytest

from seqloom.config.recipes import read_recipe
from seqloom.data.generators.adding import adding

CONSTANT = 1 / 6  # the error of whoever always answers 1
pairs = [(example.source, example.target) for example in adding(2200, length=16)]
train, test = pairs[:2000], pairs[2000:]
RECIPE = read_recipe("adding")
RECIPE["train"] |= {"steps": 200, "learning_rate": 1e-2, "schedule": "cosine", "tokens": 1024}
RECIPE["train"] |= {"validate_every": 10_000, "device": "cpu"}


def test_an_lstm_learns_to_add_what_is_marked(learn):
    model = learn(RECIPE, train)
    assert model.evaluate(test)["mse"] <= CONSTANT / 10
    (said,) = model.predict(["0.1,0 0.9,1 0.3,0 0.2,0 0.5,0 0.6,0 0.1,1 0.8,0"])
    assert said == pytest.approx([1.0], abs=0.4)


def test_without_markers_nothing_beats_the_constant_by_much(learn):
    """The same values, none marked: what is left is what the sum of all of them tells of two."""

    def unmarked(source):
        return source.replace(",1", ",0")

    model = learn(RECIPE, [(unmarked(source), target) for source, target in train])
    assert model.evaluate([(unmarked(source), target) for source, target in test])["mse"] >= CONSTANT / 2
