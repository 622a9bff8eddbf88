"""Rewards against plain, slow re-statements and against sacrebleu."""

from collections import Counter
from functools import cache
from importlib import import_module
from math import exp

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU

from seqloom.metrics import bleu, edit_rate, exact, gleu, iou, rouge_l
from seqloom.objectives.reward import Reward

REWARDS = (exact, edit_rate, bleu, gleu, rouge_l, iou)


def random_pairs(number=300, tokens=4, longest=9, seed=0):
    """Short sequences of few tokens, so that they share much; some are empty, some equal."""
    chance = np.random.default_rng(seed)

    def sequence():
        return chance.integers(0, tokens, chance.integers(0, longest + 1)).tolist()

    pairs = [(sequence(), sequence()) for _ in range(number)]
    return [*pairs, ([], []), ([1, 2, 3], [1, 2, 3]), ([], [1]), ([1], []), ([1], [1]), ([1, 2], [1, 3])]


def edits(found, expected):
    @cache
    def distance(i, j):
        if not i or not j:
            return i + j
        same = found[i - 1] == expected[j - 1]
        return min(distance(i - 1, j) + 1, distance(i, j - 1) + 1, distance(i - 1, j - 1) + (not same))

    return distance(len(found), len(expected))


def common(found, expected):
    @cache
    def longest(i, j):
        if not i or not j:
            return 0
        if found[i - 1] == expected[j - 1]:
            return longest(i - 1, j - 1) + 1
        return max(longest(i - 1, j), longest(i, j - 1))

    return longest(len(found), len(expected))


def slow_exact(found, expected):
    return float(found == expected)


def slow_edit_rate(found, expected):
    return -edits(found, expected) / max(len(expected), 1)


def slow_rouge_l(found, expected):
    if not found and not expected:
        return 1.0
    matched = common(found, expected)
    if not matched:
        return 0.0
    precision, recall = matched / len(found), matched / len(expected)
    return 2 * precision * recall / (precision + recall)


def slow_iou(found, expected):
    return len({*found} & {*expected}) / len({*found} | {*expected}) if found or expected else 1.0


def slow_gleu(found, expected):
    """The lower of precision and recall over all n-grams, in lists from which matches are struck out."""
    ours, theirs = (
        [tuple(each[i : i + order]) for order in (1, 2, 3, 4) for i in range(len(each) - order + 1)]
        for each in (found, expected)
    )
    if not ours or not theirs:
        return float(ours == theirs)
    left, matches = [*theirs], 0
    for gram in ours:
        if gram in left:
            left.remove(gram)
            matches += 1
    return min(matches / len(ours), matches / len(theirs))


def slow_bleu(found, expected):
    if not {*found} & {*expected}:
        return 0.0
    product = 1.0
    for order in range(1, 5):
        ours, theirs = (
            Counter(tuple(each[i : i + order]) for i in range(len(each) - order + 1)) for each in (found, expected)
        )
        more = int(order > 1)
        product *= ((ours & theirs).total() + more) / (ours.total() + more)
    brevity = min(1.0, exp(1 - len(expected) / len(found)))
    return brevity * product**0.25


@pytest.mark.parametrize("module", REWARDS, ids=lambda module: module.__name__.split(".")[-1])
def test_rewards_are_their_plain_definitions(module):
    slow = globals()[f"slow_{module.__name__.split('.')[-1]}"]
    found, expected = map(list, zip(*random_pairs()))
    values = module.rewards(found, expected)
    assert values.dtype == np.float64
    assert values.shape == (len(found),)
    np.testing.assert_allclose(values, [slow(*pair) for pair in zip(found, expected)], rtol=1e-12, atol=1e-14)
    assert len(np.unique(values)) > (1 if module is exact else 5)


def test_the_bleu_of_a_sentence_is_that_of_sacrebleu():
    theirs = BLEU(smooth_method="add-k", effective_order=True, tokenize="none")
    for tokens, longest in ((3, 6), (6, 25), (30, 40)):
        words = [[[f"w{token}" for token in side] for side in pair] for pair in random_pairs(200, tokens, longest)]
        found, expected = map(list, zip(*words))
        scores = [theirs.sentence_score(" ".join(one), [" ".join(other)]).score / 100 for one, other in words]
        np.testing.assert_allclose(bleu.rewards(found, expected), scores, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("module", REWARDS, ids=lambda module: module.__name__.split(".")[-1])
def test_the_type_of_tokens_does_not_matter(module):
    found, expected = map(list, zip(*random_pairs()))
    values = module.rewards(found, expected)
    words, others = ([[f"w{token}" for token in each] for each in side] for side in (found, expected))
    np.testing.assert_array_equal(module.rewards(words, others), values)
    texts, others = (["".join("abcd"[token] for token in each) for each in side] for side in (found, expected))
    np.testing.assert_array_equal(module.rewards(texts, others), values)
    assert module.rewards([], []).shape == (0,)
    with pytest.raises(ValueError):
        module.rewards([[1]], [[1], [2]])


def test_the_reward_of_a_pair_does_not_depend_on_its_batch():
    found, expected = map(list, zip(*random_pairs(50)))
    for module in REWARDS:
        alone = [module.rewards([one], [other])[0] for one, other in zip(found, expected)]
        np.testing.assert_array_equal(module.rewards(found, expected), alone)


@pytest.mark.parametrize("name", ["exact", "gleu", "rouge_l", "iou"])
def test_a_metric_is_the_mean_of_its_rewards(name):
    module = import_module(f"seqloom.metrics.{name}")
    texts = [[" ".join("abcd"[token] for token in side) for side in pair] for pair in random_pairs(40, longest=3)]
    found, expected = map(list, zip(*texts))
    metric, read = getattr(module, name), str if name == "exact" else str.split
    values = module.rewards(list(map(read, found)), list(map(read, expected)))
    assert metric(found, [[each] for each in expected]) == {name: pytest.approx(100 * values.mean())}
    others = expected[::-1]
    best = np.maximum(values, module.rewards(list(map(read, found)), list(map(read, others))))
    assert metric(found, list(map(list, zip(expected, others)))) == {name: pytest.approx(100 * best.mean())}
    assert best.mean() > values.mean()


def test_metrics_of_hand_worked_sentences():
    # "the on mat" is the longest common subsequence, 3 words of 5 and 4; 3 of 5 different words are in both
    found, expected = ["the cat on the mat"], [["the dog on mat"]]
    assert rouge_l.rouge_l(found, expected) == {"rouge_l": pytest.approx(100 * 6 / 9)}
    assert iou.iou(found, expected) == {"iou": pytest.approx(100 * 3 / 5)}
    # of 14 and 10 n-grams "the", "on" and "mat" are shared; no bigram is
    assert gleu.gleu(found, expected) == {"gleu": pytest.approx(100 * 3 / 14)}


def test_a_reward_compares_tokens_words_or_characters():
    spelled = {4: "loom", 5: "loop", 6: "weave"}

    def decode(tokens):
        return " ".join(spelled[token] for token in tokens)

    found, expected = [[4, 6], [4]], [[5, 6], [4]]
    assert Reward("edit-rate", "symbols", None)(found, expected).tolist() == [-1 / 2, 0]
    assert Reward("edit_rate", "words", decode)(found, expected).tolist() == [-1 / 2, 0]
    assert Reward("edit_rate", "characters", decode)(found, expected).tolist() == [-1 / 10, 0]
    for module in REWARDS:
        name = module.__name__.split(".")[-1]
        for of, read in (("words", str.split), ("characters", str)):
            texts, others = ([read(decode(each)) for each in side] for side in (found, expected))
            np.testing.assert_array_equal(Reward(name, of, decode)(found, expected), module.rewards(texts, others))


@pytest.mark.parametrize(
    ("name", "of", "words"),
    [
        ("blue", "symbols", 'reward = "blue": no such reward .did you mean "bleu"'),
        ("ngrams", "symbols", "no such reward"),
        ("wer", "symbols", "no such reward"),
        ("bleu", "word", 'reward_of = "word" must be'),
        ("bleu", "words", 'reward_of = "words" needs'),
    ],
)
def test_an_invalid_reward_is_refused_in_one_line(name, of, words):
    with pytest.raises(ValueError, match=words) as caught:
        Reward(name, of, None)
    assert "\n" not in str(caught.value)
