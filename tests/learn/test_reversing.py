"""Spelling backwards: learned by an LSTM and by a Transformer, and by neither when what it takes is missing."""

import random

import pytest

from tests.learn.tiny import lstm, transformer, words

pairs = [(word, word[::-1]) for word in words(1400, range(1, 6))]
train, test = pairs[:1200], pairs[1200:]
LONG = [pair for pair in test if len(pair[0]) >= 4]


@pytest.mark.parametrize("recipe", [lstm(160), transformer(240)], ids=["lstm", "transformer"])
def test_words_never_seen_are_reversed(learn, recipe):
    model = learn(recipe, train)
    assert model.evaluate(test)["exact"] >= 60
    right, wrong = (model.score([("abcd", answer)])[0] for answer in ("dcba", "abcd"))
    assert right > wrong + 2  # in nats: it knows, rather than prefers


def test_from_shuffled_sources_nothing_is_learned(learn):
    """The same words, letters and lengths, but no source belongs to its target: only chance is left."""
    targets = [target for _, target in train]
    random.Random(1).shuffle(targets)
    model = learn(lstm(160), [(source, target) for (source, _), target in zip(train, targets)])
    assert model.evaluate(LONG)["exact"] <= 25
    symbols = sum(len(target) + 1 for _, target in LONG)
    assert -sum(model.score(LONG)) / symbols >= 1.0  # nats; a fair choice of five letters costs 1.61


def test_a_transformer_that_is_not_told_positions_cannot_reverse(learn):
    """With a single learned position all places look alike: the encoder sees a bag of letters."""
    model = learn(transformer(240, positions="learned", longest=1), train)
    assert model.evaluate(LONG)["exact"] <= 45
    assert model.evaluate(LONG)["cer"] >= 20
    first, second = (model.score([(source, "dcba")])[0] for source in ("abcd", "bdac"))
    assert first == pytest.approx(second, abs=1e-4)
