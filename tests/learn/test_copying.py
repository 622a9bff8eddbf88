"""Copying words: with attention it is learned, and at the same cost without it is not."""

import pytest

from tests.learn.tiny import lstm, words

STEPS = 200
pairs = [(word, word) for word in words(2200, range(4, 9))]
train, test = pairs[:2000], pairs[2000:]


@pytest.fixture(scope="module")
def attentive(learn):
    return learn(lstm(STEPS), train)


def test_an_lstm_with_attention_learns_to_copy(attentive):
    assert attentive.evaluate(test)["exact"] >= 65


def test_at_the_same_cost_no_attention_loses_and_loses_more_on_longer_words(learn, attentive):
    plain = learn(lstm(STEPS, attention=False), train)
    short, long = ([pair for pair in test if (len(pair[0]) > 6) == is_long] for is_long in (False, True))
    gaps = [attentive.evaluate(part)["exact"] - plain.evaluate(part)["exact"] for part in (short, long)]
    assert plain.evaluate(long)["exact"] <= 50
    assert gaps[1] >= 30
    assert gaps[1] > gaps[0]


def test_a_copy_is_made_looking_at_the_letter_that_is_copied(attentive):
    hits = count = 0
    for (found,) in attentive.candidates([source for source, _ in test], attention=True):
        for place in range(len(found.tokens)):
            looked = found.attention[place]
            hits += max(range(len(looked)), key=looked.__getitem__) == place
            count += 1
    assert hits / count >= 0.5
