"""Names that nobody has seen are copied by those who can; what was said a moment ago is said again."""

import random

import pytest

from tests.learn.tiny import LETTERS

COMMON = ["ab", "bc", "cd", "de", "ea"]


def names(count, seed):
    """Different words that no vocabulary has."""
    chance = random.Random(seed)
    found = {}
    while len(found) < count:
        found["".join(chance.choices("vwxyz", k=6))] = None
    return list(found)


def sentences(count, seed):
    """Common words in capitals, names as they are: a b zork -> A B zork."""
    chance, new, pairs = random.Random(seed), names(count, seed), []
    for name in new:
        words = chance.choices(COMMON, k=chance.randint(2, 5))
        words.insert(chance.randrange(len(words) + 1), name)
        pairs.append((" ".join(words), " ".join(word.upper() if word in COMMON else word for word in words)))
    return pairs


train, test = sentences(1500, 1), sentences(100, 2)


def recipe(decoder, copy, steps=200, learning_rate=1e-2):
    text = {"type": "text", "units": "word", "size": len(COMMON)}
    return {
        "seed": 1,
        "search": {"type": "beam", "beam_size": 1},
        "task": {"source": text, "target": text, "copy": copy, "metrics": ["exact", "copy_recall"]},
        "encoder": {"type": "recurrent", "embedding_size": 24, "size": 24, "bidirectional": True},
        "decoder": decoder,
        "train": {"steps": steps, "tokens": 512, "learning_rate": learning_rate, "schedule": "cosine", "warmup": 20,
                  "validate_every": 10_000, "device": "cpu"},
    }  # fmt: skip


ATTENTION = {"type": "additive", "size": 24}
LSTM = {"type": "recurrent", "embedding_size": 24, "size": 32, "attention": ATTENTION}
TRANSFORMER = {"type": "transformer", "size": 32, "layers": 1, "heads": 2, "hidden": 64, "dropout": 0.0}


@pytest.mark.parametrize(
    ("mixture", "inner", "training"),
    [("soft", LSTM, {}), ("switch", LSTM, {}), ("soft", TRANSFORMER, {"steps": 350, "learning_rate": 5e-3})],
    ids=["soft", "switch", "transformer"],
)
def test_names_that_nobody_has_seen_are_copied(learn, mixture, inner, training):
    decoder = {"type": "copy", "mixture": mixture, "attention": ATTENTION, "decoder": inner}
    copier = learn(recipe(decoder, True, **training), train)
    measured = copier.evaluate(test)
    assert measured["copy_recall"] >= 75
    assert measured["exact"] >= 60


def test_without_copying_they_are_lost_and_attention_may_find_them(learn):
    plain = learn(recipe(LSTM, False), train)
    lost, found = plain.evaluate(test), plain.evaluate(test, replace_unknown=True)
    assert lost["copy_recall"] == 0
    assert found["copy_recall"] >= 50
    assert any("⁇" not in text and text != text.upper() for text in plain.predict([test[0][0]], replace_unknown=True))


def text_of(lines, seed):
    """Lines of three words each, of a hundred, again and again."""
    chance = random.Random(seed)
    known = [one + other + third for one in LETTERS for other in LETTERS for third in "abcd"]
    return [" ".join(chance.choices(chance.sample(known, 3), k=12)) for _ in range(lines)]


def running(decoder):
    return {
        "seed": 1,
        "task": {"type": "text", "target": {"type": "text", "units": "word", "size": 200}, "window": 26},
        "decoder": decoder,
        "train": {"steps": 150, "tokens": 416, "learning_rate": 1e-2, "schedule": "cosine", "warmup": 20,
                  "validate_every": 10_000, "device": "cpu"},
    }  # fmt: skip


def test_a_sentinel_repeats_what_an_lstm_must_remember(learn):
    lstm = {"type": "recurrent", "embedding_size": 24, "size": 32}
    lines, others = text_of(600, 1), text_of(60, 2)
    plain = learn(running(lstm), lines).evaluate(others)["perplexity"]
    pointing = learn(running({"type": "sentinel", "decoder": lstm, "window": 12}), lines).evaluate(others)["perplexity"]
    assert pointing <= 0.7 * plain
