"""Monotonic attention is trained in expectation and decodes with hard choices: noise makes the two agree."""

from tests.learn.tiny import lstm, words

pairs = [(word, word) for word in words(1700, range(2, 6))]
train, test = pairs[:1500], pairs[1500:]


def copied(learn, noise):
    """Share of unseen words that are copied, with hard choices and in expectation."""
    recipe = lstm(300, tokens=192)
    recipe["encoder"]["bidirectional"] = False
    recipe["decoder"]["attention"] = {"type": "monotonic", "size": 32, "noise": noise}
    recipe["train"]["learning_rate"] = 1.5e-2
    model = learn(recipe, train)
    hard = model.evaluate(test)["exact"]
    model.model.decoder.attention.decoding = "soft"
    return hard, model.evaluate(test)["exact"]


def test_with_noise_hard_choices_copy_as_well_as_expectations(learn):
    hard, soft = copied(learn, noise=3.0)
    assert hard >= 60
    assert abs(hard - soft) <= 25


def test_without_noise_expectations_copy_and_hard_choices_do_not(learn):
    hard, soft = copied(learn, noise=0.0)
    assert soft >= 75
    assert hard <= 50
