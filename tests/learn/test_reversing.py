"""Reversing words: learned by an LSTM and by a Transformer, and by neither without what it needs."""

import random

import pytest

from tests.learn.tiny import lstm, transformer, words

pairs = [(word, word[::-1]) for word in words(1600, range(1, 6))]
train, test = pairs[:1400], pairs[1400:]
LONG = [pair for pair in test if len(pair[0]) >= 4]


@pytest.mark.parametrize("recipe", [lstm(150), transformer(240)], ids=["lstm", "transformer"])
def test_unseen_words_are_reversed(learn, recipe):
    model = learn(recipe, train)
    assert model.evaluate(LONG)["exact"] >= 55
    right, wrong = (model.score([("abcd", answer)])[0] for answer in ("dcba", "abcd"))
    assert right > wrong + 3  # nats


def test_nothing_is_learned_from_shuffled_sources(learn):
    """The same words on both sides, but no source belongs to its target."""
    targets = [target for _, target in train]
    random.Random(1).shuffle(targets)
    model = learn(lstm(150), [(source, target) for (source, _), target in zip(train, targets)])
    assert model.evaluate(LONG)["exact"] <= 25
    tokens = sum(len(target) + 1 for _, target in LONG)
    assert -sum(model.score(LONG)) / tokens >= 1  # nats; a fair choice among five letters costs 1.61


def test_transformer_without_positions_cannot_reverse(learn):
    """With a single learned position the encoder sees a bag of letters."""
    model = learn(transformer(240, positions="learned", longest=1), train)
    assert model.evaluate(LONG)["exact"] <= 35
    first, second = (model.score([(source, "dcba")])[0] for source in ("abcd", "bdac"))
    assert first == pytest.approx(second, abs=1e-3)
