"""Whereabouts, cut to seconds: a memory network learns who went where last, and cannot without sentence ages."""

from seqloom.config.recipes import read_recipe
from seqloom.data.generators.whereabouts import whereabouts

pairs = [(example.source, example.target) for example in whereabouts(1200, shortest=6, longest=8, facts=1)]
train, test = pairs[:1000], pairs[1000:]
RECIPE = read_recipe("babi")
RECIPE["encoder"] |= {"hops": 1, "ages": 10, "linear_start": 0.0}
RECIPE["train"] |= {"epochs": 10, "optimiser": "adam", "learning_rate": 2e-2, "schedule": "cosine", "clip": 1.0}
RECIPE["train"] |= {"validate_every": 10_000, "device": "cpu"}


def test_memory_network_learns_who_went_where_last(learn):
    model = learn(RECIPE, train)
    assert model.evaluate(test)["exact"] >= 88
    story = "Mary went to the garden. John went to the office. Mary went to the kitchen. Where is Mary?"
    assert model.predict([story]) == ["kitchen"]
    weights = model.explain(story).attention[0]
    assert weights.index(max(weights)) == 2


def test_without_sentence_ages_the_last_place_cannot_be_told_from_earlier_ones(learn):
    model = learn({**RECIPE, "encoder": {**RECIPE["encoder"], "ages": 0}}, train)
    assert model.evaluate(test)["exact"] <= 84
