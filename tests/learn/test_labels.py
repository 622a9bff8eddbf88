"""Labels and tags: learned from words, from spellings never seen, and by the tags around."""

import random

import pytest

from tests.learn.tiny import words

NAMES = [word for word in words(900, range(3, 7)) if not word.endswith("ing")]
ENDINGS = {"ing": "VBG", "s": "NNS", "": "NN"}


def recipe(task, decoder, encoder=None, metric="accuracy", target="word", steps=120):
    inner = encoder or {"type": "recurrent", "embedding_size": 24, "size": 24, "bidirectional": True}
    spelling = {"type": "spelling", "embedding_size": 16, "spelling_size": 32, "buckets": 500, "encoder": inner}
    return {
        "seed": 1,
        "task": {
            "type": task,
            "source": {"type": "words", "size": 200},
            "target": {"type": "text", "units": target},
            "metrics": [metric],
        },
        "encoder": spelling,
        "decoder": decoder,
        "train": {"schedule": "cosine", "warmup": 10, "steps": steps, "tokens": 256, "learning_rate": 1e-2,
                  "validate_every": 10_000, "device": "cpu"},
    }  # fmt: skip


def moods(count, seed):
    """Whether a sentence is glad: it has a glad word, and no "not" before it."""
    chance = random.Random(seed)
    pairs = []
    for _ in range(count):
        filler = [chance.choice("abcdefgh") for _ in range(chance.randrange(2, 9))]
        turned = chance.random() < 0.5
        place = chance.randrange(len(filler) + 1)
        filler[place:place] = ["not", "glad"] if turned else ["glad"]
        pairs.append((" ".join(filler), "very sad" if turned else "very glad"))
    return pairs


TRANSFORMER = {"type": "transformer", "size": 32, "layers": 1, "heads": 4, "hidden": 64, "dropout": 0.0}


@pytest.mark.parametrize("pooling", ["mean_max", "attention"])
@pytest.mark.parametrize("encoder", [None, TRANSFORMER], ids=["lstm", "transformer"])
def test_labels_are_learned_on_any_encoder(learn, encoder, pooling):
    model = learn(recipe("answer", {"type": "label", "pooling": pooling}, encoder, target="line"), moods(400, 1))
    assert model.evaluate(moods(100, 2))["accuracy"] >= 80
    first, second = model.candidates(["a not glad b"], n_best=2)[0]
    assert first.text == "very sad"
    assert second.text == "very glad"
    assert model.score([("a not glad b", "very sad")])[0] == pytest.approx(first.score, abs=1e-5)


def spelled(names):
    """Three words each, their tags told by their endings."""
    chance, pairs = random.Random(1), []
    for start in range(0, len(names), 3):
        endings = chance.choices(list(ENDINGS), k=3)
        spelled_out = [name + ending for name, ending in zip(names[start : start + 3], endings)]
        pairs.append((" ".join(spelled_out), " ".join(ENDINGS[each] for each in endings[: len(spelled_out)])))
    return pairs


def test_unseen_words_are_tagged_by_their_spelling(learn):
    pairs = spelled(NAMES)
    train, test = pairs[:200], pairs[200:]
    found = learn(recipe("tagging", {"type": "tags"}, metric="tag_accuracy"), train)
    assert found.evaluate(test)["tag_accuracy"] >= 85
    unspelled = recipe("tagging", {"type": "tags"}, metric="tag_accuracy")
    unspelled["task"]["source"] = {"type": "text", "units": "word", "size": 200}
    unspelled["encoder"] = unspelled["encoder"]["encoder"]
    assert learn(unspelled, train).evaluate(test)["tag_accuracy"] <= 65


def weather(count, seed):
    """The weather, seen through a noisy sensor: it changes seldom, so that the tags around tell more than a word."""
    chance = random.Random(seed)
    pairs = []
    for _ in range(count):
        state, seen, tags = chance.choice("AB"), [], []
        for _ in range(12):
            state = state if chance.random() < 0.95 else "AB"["BA".index(state)]
            seen.append(state.lower() if chance.random() < 0.75 else "ab"["BA".index(state)])
            tags.append(state)
        pairs.append((" ".join(seen), " ".join(tags)))
    return pairs


def test_a_random_field_learns_which_tags_follow_each_other(learn):
    """The encoder sees one word at a time, so that only the transitions can tell."""
    alone = {"type": "convolution", "size": 16, "layers": 1, "kernel": 1}
    scores = {}
    for crf in (False, True):
        decoder = {"type": "tags", "crf": crf}
        model = learn(recipe("tagging", decoder, alone, "tag_accuracy", steps=200), weather(300, 1))
        scores[crf] = model.evaluate(weather(100, 2))["tag_accuracy"]
    assert scores[False] <= 80
    assert scores[True] >= scores[False] + 5
