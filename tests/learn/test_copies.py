"""Copying words of the source that no vocabulary has, and words that were written before."""

import random

import pytest

from tests.learn.tiny import LETTERS

COMMON = ["ab", "bc", "cd", "de", "ea"]


def names(count, seed):
    """Different words that are in no vocabulary."""
    chance = random.Random(seed)
    found = {}
    while len(found) < count:
        found["".join(chance.choices("vwxyz", k=6))] = None
    return list(found)


def sentences(count, seed):
    """Common words become capitals, names stay as they are: ab cd zyxwv -> AB CD zyxwv."""
    chance, pairs = random.Random(seed), []
    for name in names(count, seed):
        words = chance.choices(COMMON, k=chance.randint(2, 5))
        words.insert(chance.randrange(len(words) + 1), name)
        pairs.append((" ".join(words), " ".join(word.upper() if word in COMMON else word for word in words)))
    return pairs


train, test = sentences(1500, 1), sentences(100, 2)


def recipe(decoder, copy, steps=140, learning_rate=1e-2):
    text = {"type": "text", "units": "word", "size": len(COMMON)}
    return {
        "seed": 1,
        "search": {"type": "beam", "beam_size": 1},
        "task": {"source": text, "target": text, "copy": copy, "metrics": ["exact", "copy_recall"]},
        "encoder": {"type": "recurrent", "embedding_size": 24, "size": 24, "bidirectional": True},
        "decoder": decoder,
        "train": {"steps": steps, "tokens": 256, "learning_rate": learning_rate, "schedule": "cosine", "warmup": 20,
                  "validate_every": 10_000, "device": "cpu"},
    }  # fmt: skip


ATTENTION = {"type": "additive", "size": 24}
LSTM = {"type": "recurrent", "embedding_size": 24, "size": 32, "attention": ATTENTION}
TRANSFORMER = {"type": "transformer", "size": 32, "layers": 1, "heads": 2, "hidden": 64, "dropout": 0.0}


@pytest.mark.parametrize(
    ("mixture", "inner", "training"),
    [("soft", LSTM, {}), ("switch", LSTM, {}), ("soft", TRANSFORMER, {"steps": 300, "learning_rate": 5e-3})],
    ids=["soft", "switch", "transformer"],
)
def test_copying_decoder_copies_unseen_names(learn, mixture, inner, training):
    decoder = {"type": "copy", "mixture": mixture, "attention": ATTENTION, "decoder": inner}
    measured = learn(recipe(decoder, True, **training), train).evaluate(test)
    assert measured["copy_recall"] >= 60
    assert measured["exact"] >= 35


def test_without_copying_names_are_lost_unless_attention_replaces_them(learn):
    plain = learn(recipe(LSTM, False, steps=200), train)
    lost, replaced = plain.evaluate(test), plain.evaluate(test, replace_unknown=True)
    assert lost["copy_recall"] == 0
    assert replaced["copy_recall"] >= 40


def text_of(lines, seed):
    """Each line repeats three words out of a hundred."""
    chance = random.Random(seed)
    known = [one + other + third for one in LETTERS for other in LETTERS for third in "abcd"]
    return [" ".join(chance.choices(chance.sample(known, 3), k=12)) for _ in range(lines)]


def running(decoder):
    return {
        "seed": 1,
        "task": {"type": "text", "target": {"type": "text", "units": "word", "size": 200}, "window": 26},
        "decoder": decoder,
        "train": {"steps": 100, "tokens": 416, "learning_rate": 1e-2, "schedule": "cosine", "warmup": 20,
                  "validate_every": 10_000, "device": "cpu"},
    }  # fmt: skip


def test_pointer_sentinel_predicts_repeated_words_better_than_an_lstm(learn):
    lstm = {"type": "recurrent", "embedding_size": 24, "size": 32}
    lines, others = text_of(600, 1), text_of(60, 2)
    plain = learn(running(lstm), lines).evaluate(others)["perplexity"]
    pointing = learn(running({"type": "sentinel", "decoder": lstm, "window": 12}), lines).evaluate(others)["perplexity"]
    assert pointing <= 0.6 * plain
