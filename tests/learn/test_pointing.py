"""Pointing learned in seconds: numbers in order; and what a source does not tell is not learned."""

from seqloom.config.recipes import read_recipe
from seqloom.data.generators.sorting import sorting

QUICK = {"schedule": "cosine", "warmup": 20, "validate_every": 10_000, "device": "cpu", "tokens": 512}


def pairs(examples):
    return [(example.source, example.target) for example in examples]


def small(name, steps, **train):
    recipe = read_recipe(name)
    recipe["encoder"] |= {"embedding_size": 32, "size": 48}
    recipe["decoder"] |= {"embedding_size": 32, "size": 48, "attention": {"type": "additive", "size": 48}}
    recipe["train"] = {**recipe["train"], **QUICK, "steps": steps, **train}
    del recipe["train"]["epochs"]
    return recipe


NUMBERS = pairs(sorting(12_200, shortest=4, longest=4))


def test_a_set_of_numbers_is_sorted(learn):
    model = learn(small("sorting", 250, learning_rate=1e-2), NUMBERS[:12_000])
    assert model.evaluate(NUMBERS[12_000:])["exact"] >= 60
    (order,) = model.predict(["0.9 0.1 0.5 0.3"])
    assert order == [1, 3, 2, 0]
    (longer,) = model.predict(["0.9 0.1 0.5 0.3 0.7"])  # places that no training example has
    assert sorted(longer) == [0, 1, 2, 3, 4]


def test_numbers_that_are_not_those_to_sort_teach_nothing(learn):
    others = [(source, target) for (source, _), (_, target) in zip(NUMBERS, NUMBERS[1:] + NUMBERS[:1])]
    model = learn(small("sorting", 100, learning_rate=1e-2), others[:12_000])
    assert model.evaluate(others[12_000:])["exact"] <= 40  # one order of 24 would be right by chance
