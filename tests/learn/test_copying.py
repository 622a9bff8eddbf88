"""Copying words letter by letter: learned with attention, and not at the same cost without it."""

import pytest

from tests.learn.tiny import lstm, words

STEPS = 200
pairs = [(word, word) for word in words(1600, range(4, 9))]
train, test = pairs[:1400], pairs[1400:]


@pytest.fixture(scope="module")
def attentive(learn):
    return learn(lstm(STEPS), train)


def test_lstm_with_attention_learns_to_copy(attentive):
    assert attentive.evaluate(test)["exact"] >= 55


def test_without_attention_copying_fails_most_of_all_for_long_words(learn, attentive):
    plain = learn(lstm(STEPS, attention=False), train)
    short, long = ([pair for pair in test if (len(pair[0]) > 6) == is_long] for is_long in (False, True))
    gaps = [attentive.evaluate(part)["exact"] - plain.evaluate(part)["exact"] for part in (short, long)]
    assert plain.evaluate(long)["exact"] <= 40
    assert gaps[1] >= 40
    assert gaps[1] > gaps[0]


def test_attention_is_on_the_letter_that_is_copied(attentive):
    hits = count = 0
    for (found,) in attentive.candidates([source for source, _ in test], attention=True):
        for place in range(len(found.tokens)):
            weights = found.attention[place]
            hits += max(range(len(weights)), key=weights.__getitem__) == place
            count += 1
    assert hits / count >= 0.5
