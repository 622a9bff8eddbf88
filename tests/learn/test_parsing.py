"""Parsing learned in seconds: expressions, in which products bind first. Trees of other expressions are not learned."""

import random

import pytest

from seqloom.config.recipes import read_recipe
from seqloom.data.generators.expressions import expressions
from seqloom.metrics.trees import as_text, read_tree

pairs = [(example.source, example.target) for example in expressions(3100, depth=0)]
held_out = 3000


def recipe(steps):
    made = read_recipe("parsing")
    made["encoder"] |= {"embedding_size": 32, "size": 64, "dropout": 0.0}
    made["decoder"] |= {"embedding_size": 32, "size": 64, "dropout": 0.0}
    made["train"] |= {"schedule": "cosine", "warmup": 20, "validate_every": 10_000, "device": "cpu", "tokens": 512}
    made["train"] |= {"steps": steps, "learning_rate": 1e-2}
    del made["train"]["epochs"]
    return made


@pytest.mark.slow
def test_trees_of_expressions_are_learned_and_the_constraint_helps(learn):
    model = learn(recipe(300), pairs[:held_out])
    found = model.evaluate(pairs[held_out:])
    assert found["bracket_f1"] >= 80
    assert found["complete"] >= 75
    assert found["well_formed"] == 100
    model.task.valid = ""
    free = model.evaluate(pairs[held_out:])
    assert free["well_formed"] < 100
    assert free["bracket_f1"] < found["bracket_f1"]


@pytest.mark.slow
def test_trees_over_words_in_random_order_cannot_be_learned(learn):
    """The number of words is all that such a source tells of its tree."""
    chance, others = random.Random(1), []
    for source, target in pairs:
        words, steps = source.split(), read_tree(target)
        chance.shuffle(words)
        given, shuffled = iter(words), " ".join(words)
        others.append((shuffled, as_text(step._replace(word=next(given)) if step.word else step for step in steps)))
    found = learn(recipe(200), others[:held_out]).evaluate(others[held_out:])
    assert found["complete"] <= 60
    assert found["well_formed"] == 100
