"""The studies of dialogues: the splits of DailyDialog, and Kneser-Ney against its formula."""

import gzip
import itertools
from collections import Counter
from math import exp, log

import numpy as np
import pytest

import seqloom
from seqloom.data.special_tokens import BOS, EOS
from seqloom.studies.measures.dialogue import reply_perplexities
from seqloom.studies.measures.kneser_ney import KneserNey
from seqloom.studies.sources.dialogue import dailydialog
from seqloom.studies.study import Splits
from seqloom.train.display import Display

TEXTS = [[4, 5, 6], [4, 5, 5], [6, 4, 5, 6], [7], [4, 5, 6, 7, 4], [8]]
VOCABULARY = 10


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_probabilities_of_every_history_sum_to_one_of_the_vocabulary(order):
    model = KneserNey(order=order, vocabulary=VOCABULARY).fit(TEXTS)
    for history in itertools.product(range(VOCABULARY), repeat=order - 1):
        total = sum(model.probability((*history, token)) for token in range(VOCABULARY))
        assert total == pytest.approx(1, abs=1e-12)


def test_bigrams_are_those_of_the_formula():
    """Written out anew: the lower order counts in how many different places a token stands, not how often."""
    model = KneserNey(order=2, vocabulary=VOCABULARY).fit(TEXTS)
    pairs = Counter(pair for text in TEXTS for pair in zip([BOS, *text], [*text, EOS]))
    discount = sum(count == 1 for count in pairs.values()) / (
        sum(count == 1 for count in pairs.values()) + 2 * sum(count == 2 for count in pairs.values())
    )
    places = Counter(after for _, after in pairs)
    low = sum(count == 1 for count in places.values())
    low /= low + 2 * sum(count == 2 for count in places.values())
    for before, after in itertools.product([BOS, 4, 5, 6, 7, 8], [4, 5, 6, 7, 8, 9, EOS]):
        unigram = (max(places[after] - low, 0) + low * len(places) / VOCABULARY) / len(pairs)
        total = sum(count for (first, _), count in pairs.items() if first == before)
        kinds = sum(first == before for first, _ in pairs)
        expected = (max(pairs[before, after] - discount, 0) + discount * kinds * unigram) / total
        assert model.probability((before, after)) == pytest.approx(expected, rel=1e-12)


def test_a_history_that_never_came_says_nothing():
    model = KneserNey(order=3, vocabulary=VOCABULARY).fit(TEXTS)
    assert model.probability((9, 4, 5)) == model.probability((4, 5))
    assert model.probability((9, 9, 5)) == model.probability((5,))


def test_the_text_it_learned_is_likelier_than_chance():
    chance = np.random.default_rng(1)
    texts = [chance.choice([4, 5, 6, 7], 10, p=[0.7, 0.1, 0.1, 0.1]).tolist() for _ in range(200)]
    model = KneserNey(order=3, vocabulary=VOCABULARY).fit(texts[:150])
    nats = -sum(map(model.log_prob, texts[150:])) / (50 * 11)
    entropy = -(0.7 * log(0.7) + 0.3 * log(0.1)) * 10 / 11  # of a token; the end is certain but for noise
    assert entropy < nats < entropy + 0.35 < log(VOCABULARY)


def test_a_dialogue_stays_in_one_split_only(tmp_path, monkeypatch):
    monkeypatch.setenv("SEQLOOM_DATA", str(tmp_path))
    (tmp_path / "dailydialog").mkdir()
    for part, lines in {
        "train": ["a __eou__ b __eou__", "C __eou__ d  __eou__", "e __eou__ f __eou__", "e __eou__ f __eou__"],
        "validation": ["c __eou__ d __eou__", "g __eou__ h __eou__"],
        "test": ["G __eou__ h __eou__"],
    }.items():
        with gzip.open(tmp_path / "dailydialog" / f"dialogues_{part}.txt.gz", "wt", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)
    found = dailydialog(tmp_path / "made")

    def read(files):
        with open(files[0], encoding="utf-8") as file:
            return file.read().splitlines()

    assert read(found.test) == ["G __eou__ h __eou__"]
    assert read(found.valid) == ["c __eou__ d __eou__"]
    assert read(found.train) == ["a __eou__ b __eou__", *["e __eou__ f __eou__"] * 2]


def test_perplexities_count_replies_only(tmp_path, monkeypatch):
    monkeypatch.setenv("SEQLOOM_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "dialogues.txt"
    file.write_text("".join(f"how many ? __eou__ {n % 5} . __eou__ thanks . __eou__\n" for n in range(30)))
    model = seqloom.fit(
        str(file), "hred", out=tmp_path / "run", valid=str(file), display=Display.quiet(), settings=["train.steps=2"]
    )
    measured = reply_perplexities(model, Splits([str(file)], [str(file)], [str(file)]))
    assert measured["valid_perplexity"] == measured["test_perplexity"]
    examples = list(model.examples([str(file)]))
    assert len(examples) == 60
    tokens = 60 * 3  # "3 ." and "thanks .", each with EOS
    assert measured["test_perplexity"] == pytest.approx(exp(-sum(model.score(examples)) / tokens))
    assert 1 < measured["kn3_perplexity"] < 3  # five numbers, once in six tokens
