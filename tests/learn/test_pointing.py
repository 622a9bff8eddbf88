"""Pointing learned in seconds: numbers are sorted, and an order that the source does not tell is not learned."""

from seqloom.config.recipes import read_recipe
from seqloom.data.generators.sorting import sorting

numbers = [(example.source, example.target) for example in sorting(6200, shortest=4, longest=4)]
held_out = 6000


def recipe(steps):
    made = read_recipe("sorting")
    made["encoder"] |= {"embedding_size": 32, "size": 48}
    made["decoder"] |= {"embedding_size": 32, "size": 48, "attention": {"type": "additive", "size": 48}}
    made["train"] |= {"schedule": "cosine", "warmup": 20, "validate_every": 10_000, "device": "cpu", "tokens": 256}
    made["train"] |= {"steps": steps, "learning_rate": 1e-2}
    del made["train"]["epochs"]
    return made


def test_pointer_network_sorts_numbers(learn):
    model = learn(recipe(250), numbers[:held_out])
    assert model.evaluate(numbers[held_out:])["exact"] >= 55
    (order,) = model.predict(["0.9 0.1 0.5 0.3"])
    assert order == [1, 3, 2, 0]
    (longer,) = model.predict(["0.9 0.1 0.5 0.3 0.7"])  # longer than any training example
    assert sorted(longer) == [0, 1, 2, 3, 4]


def test_orders_of_other_numbers_cannot_be_learned(learn):
    """Of 24 orders one would be right by chance."""
    others = [(source, target) for (source, _), (_, target) in zip(numbers, numbers[1:] + numbers[:1])]
    assert learn(recipe(100), others[:held_out]).evaluate(others[held_out:])["exact"] <= 25
