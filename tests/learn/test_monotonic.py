"""Monotonic attention is trained in expectation and used hard: noise is what makes the two agree."""

from tests.learn.tiny import lstm, words

pairs = [(word, word) for word in words(1700, range(2, 6))]
train, test = pairs[:1500], pairs[1500:]


def copied(learn, noise):
    """How many words never seen are copied, by places that are chosen and by expectations."""
    recipe = lstm(300, tokens=384)
    recipe["encoder"]["bidirectional"] = False
    recipe["decoder"]["attention"] = {"type": "monotonic", "size": 32, "noise": noise}
    recipe["train"]["learning_rate"] = 1.5e-2
    model = learn(recipe, train)
    hard = model.evaluate(test)["exact"]
    model.model.decoder.attention.decoding = "soft"
    return hard, model.evaluate(test)["exact"]


def test_with_noise_words_are_copied_by_choosing_places(learn):
    hard, soft = copied(learn, noise=3.0)
    assert hard >= 60
    assert abs(hard - soft) <= 30


def test_without_noise_an_expectation_is_learned_that_no_choice_can_stand_for(learn):
    hard, soft = copied(learn, noise=0.0)
    assert soft >= 70
    assert hard <= 40
