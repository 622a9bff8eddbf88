"""Metrics of captions against what other programs print: coco-caption (pycocoevalcap 1.2) and the jar of METEOR 1.5."""

from itertools import combinations, permutations
from math import exp

import numpy as np
import pytest

from seqloom.metrics.caption_bleu import caption_bleu
from seqloom.metrics.caption_words import caption_words
from seqloom.metrics.cider import cider
from seqloom.metrics.distinct import distinct
from seqloom.metrics.meteor import STAGES, Settings, count, meteor, score
from seqloom.metrics.word_alignment import align
from tests.metrics.texts import PREDICTIONS, REFERENCES


def test_caption_bleu_is_that_of_coco_caption() -> None:
    # Bleu(4).compute_score, which adds 1e-15 to matches and 1e-9 to lengths
    expected = [82.97872340072432, 63.62187206243254, 38.66977240429281, 20.95310543305627]
    found = caption_bleu(PREDICTIONS, REFERENCES)
    assert [found[f"caption_bleu_{order}"] for order in (1, 2, 3)] == pytest.approx(expected[:3], rel=1e-8)
    assert found["caption_bleu"] == pytest.approx(expected[3], rel=1e-8)


def test_the_reference_closest_in_length_counts_and_of_two_the_shorter() -> None:
    # 4 words; references of 3 and 5 are as close: no penalty. Of 6 alone it is exp(1 - 6 / 4).
    assert caption_bleu(["a b c d"], [["a b c", "a b c d e"]])["caption_bleu"] == pytest.approx(100)
    assert caption_bleu(["a b c d"], [["a b c d e f", "x"]])["caption_bleu_1"] == pytest.approx(100 * exp(-0.5))


def test_caption_bleu_is_0_without_a_common_ngram() -> None:
    found = caption_bleu(["A man, a dog."], [["a man walks"]])
    assert found == {
        "caption_bleu": 0,
        "caption_bleu_1": pytest.approx(50),
        "caption_bleu_2": pytest.approx(100 / 6**0.5),
        "caption_bleu_3": 0,
    }


def test_cider_is_100_times_that_of_coco_caption() -> None:
    # Cider().compute_score: 1.7723536010518092 and these six
    assert cider(PREDICTIONS, REFERENCES) == {"cider": pytest.approx(177.23536010518092, rel=1e-12)}
    each = [1.668276567916708, 1.1124043565055701, 2.4138650274627076, 1.9018123765129102, 0.8075530855316783]
    assert 100 * np.mean([*each, 2.7302101923812816]) == pytest.approx(177.23536010518092)


def test_cider_of_hand_worked_captions() -> None:
    # "a", "b" and "a b" are in references of both sources and weigh nothing, all others log 2: the first has no weight.
    # second: cosine 1 of unigrams ("c"), 0 of bigrams ("a c"); it has one bigram and its reference two
    assert cider(["a b", "a c"], [["a b"], ["a b c"]])["cider"] == pytest.approx(100 * 10 * exp(-1 / 72) / 4 / 2)
    # first: "b" twice counts once, 1 / (2 * 1); of its bigrams "a b", "b b" the reference has one, 1 / (sqrt 2 * 1)
    found = cider(["a b b", "x"], [["a b"], ["a c"]])["cider"]
    assert found == pytest.approx(100 * 10 * exp(-1 / 72) * (1 / 2 + 1 / 2**0.5) / 4 / 2)


def test_a_figure_of_one_source_is_0_because_no_word_tells_it_from_others() -> None:
    assert cider(["a b"], [["a b"]]) == {"cider": 0.0}


def test_meteor_is_that_of_its_program_with_the_stages_exact_and_stem() -> None:
    # java -jar meteor-1.5.jar found.txt references.txt -r 3 -m "exact stem" -w "1.0 0.6" -p "0.85 0.2 0.6 0.5"
    each = [0.35429687618228467, 0.3592826684479727, 0.37100556273578683, 0.3360807514701943, 0.13455483437248608, 1.0]
    for prediction, choices, expected in zip(PREDICTIONS, REFERENCES, each):
        assert meteor([prediction], [choices])["meteor"] == pytest.approx(100 * expected, rel=1e-12)
    assert meteor(PREDICTIONS, REFERENCES)["meteor"] == pytest.approx(33.5224021911317, rel=1e-12)


def test_meteor_of_a_hand_worked_sentence() -> None:
    # the, cat exactly, "sits" by its stem: 2.6 of 3 and of 4 words, in two chunks
    precision, recall = 2.6 / 3, 2.6 / 4
    mean = precision * recall / (0.85 * precision + 0.15 * recall)
    expected = 100 * mean * (1 - 0.6 * (2 / 3) ** 0.2)
    assert meteor(["The cat sits!"], [["the cat only sit"]])["meteor"] == pytest.approx(expected)


def test_meteor_has_other_settings_and_synonyms_if_they_are_given() -> None:
    sets = {"sofa": {"seat.1"}, "couch": {"seat.1", "bed.2"}, "bed": {"bed.2"}}
    given = {"settings": Settings(0.9, 3.0, 0.5, (1.0, 1.0, 0.8)), "synonyms": lambda word: sets.get(word, ())}
    found, expected = ["a red sofa"], [["a red couch"]]
    assert score(found, expected, **given) == pytest.approx(100 * 2.8 / 3)
    alone = score(found, expected, Settings(0.9, 3.0, 0.5))
    assert alone == pytest.approx(100 * (2 / 3) * (1 - 0.5 * (1 / 2) ** 3))


def best_by_hand(found: list[str], expected: list[str]) -> tuple[int, int]:
    """Matches and chunks of the best of all alignments."""
    fits = {
        (i, j) for i, one in enumerate(found) for j, other in enumerate(expected)
        if any({*stage(one)} & {*stage(other)} for stage in STAGES)
    }  # fmt: skip
    best = (0, 0)
    for number in range(1, min(len(found), len(expected)) + 1):
        for ours in combinations(range(len(found)), number):
            for theirs in permutations(range(len(expected)), number):
                pairs = [*zip(ours, theirs)]
                if fits.issuperset(pairs):
                    chunks = sum((i - 1, j - 1) not in pairs for i, j in pairs)
                    best = min(best, (-number, chunks))
    return -best[0], best[1]


@pytest.mark.parametrize("seed", range(40))
def test_an_alignment_has_the_most_matches_and_of_these_the_fewest_chunks(seed: int) -> None:
    chance = np.random.default_rng(seed)
    words = ["weave", "weaves", "weaving", "a", "loom"]
    found, expected = ([words[i] for i in chance.integers(0, 5, chance.integers(1, 7))] for _ in range(2))
    alignment = align(found, expected, STAGES)
    assert (sum(alignment.matches), alignment.chunks) == best_by_hand(found, expected)


def test_two_words_are_matched_by_the_first_stage_in_which_they_fit() -> None:
    assert align(["loom", "weaves"], ["loom", "weaving"], STAGES).matches == (1, 1)
    alignment = align(["looms", "loom"], ["loom", "looms"], STAGES)  # one chunk of stems, not two of words
    assert (alignment.matches, alignment.chunks) == ((0, 2), 1)
    assert align(list("abc"), list("acb"), STAGES).chunks == 3
    statistics = count(list("ab"), list("ab"))
    assert (statistics.chunks, statistics.found, statistics.expected) == (0, 2, 2)  # all in order: no penalty


@pytest.mark.parametrize(
    ("text", "words"),
    [  # as Stanford's PTBTokenizer -lowerCase prints them, punctuation left out as in coco-caption
        ("The man's dog doesn't swim.", "the man 's dog does n't swim"),
        ("We cannot see it, they've said!", "we can not see it they 've said"),
        ("A T-shirt -- black-and-white -- for $10,000...", "a t-shirt black-and-white for $ 10,000"),
        ('A girls\' team in the U.S. plays "tag"', "a girls team in the u.s. plays tag"),
        ("two dogs ; one statefarm.com hat", "two dogs one statefarm.com hat"),
        ("", ""),
    ],
)
def test_words_of_captions_are_treebank_tokens_without_punctuation(text: str, words: str) -> None:
    assert caption_words(text) == words.split()


def test_distinct_counts_different_words_and_pairs_of_all_outputs() -> None:
    # 3 of 6 words, and 3 of 4 pairs: a b, b a, b c
    found = distinct(["a b a", "a b c"], [["x"], ["x"]])
    assert found == pytest.approx({"distinct_1": 50.0, "distinct_2": 75.0, "distinct": 62.5})
    assert distinct(["a", ""], [["x"], ["x"]]) == {"distinct_1": 100.0, "distinct_2": 0.0, "distinct": 50.0}
    same = distinct(["i don't know"] * 100, [["x"]] * 100)
    assert same["distinct_1"] == pytest.approx(1)
