"""Bags against the enumeration of all orders."""

import itertools
from collections import Counter

import numpy as np
import pytest
import torch

from seqloom.data.codecs.text import Text
from seqloom.data.special_tokens import UNK
from seqloom.engines.ctranslate2 import supported, suppressed
from seqloom.errors import SeqloomError
from seqloom.inference.constraints import build_constraints
from seqloom.inference.system import System
from seqloom.nn.decoders.recurrent import Recurrent as Decoder
from seqloom.nn.encoders.recurrent import Recurrent as Encoder
from seqloom.nn.model import Model
from seqloom.predictor import Predictor
from seqloom.search.beam import BeamSearch
from seqloom.search.constraints.bag import Bag
from seqloom.search.constraints.banned import Banned
from seqloom.search.sample import Sampling
from seqloom.tasks.pairs import Pairs
from seqloom.types import Padded
from tests.building import BOS, EOS, build, cases, memory_for
from tests.exact import bigrams

SOURCE = Padded(torch.tensor([[5, 6, 5, 8], [BOS, 4, 0, 0], [7, 7, 7, 0]]), torch.tensor([4, 2, 3]))
BAGS = [(5, 6, 5, 8), (BOS, 4), (7, 7, 7)]  # BOS is a token like others, which one bag has


@pytest.fixture(params=cases("decoders", chooses=("", "copies"), endless=False))
def decoder(request):
    made = request.param()
    for parameter in made.parameters():
        parameter.data *= 2
    return made


@pytest.fixture
def memory(decoder):
    return memory_for(decoder, (4, 2, 3))


def log_prob(decoder, memory, tokens):
    inputs = Padded(torch.tensor([[BOS, *tokens]]), torch.tensor([len(tokens) + 1]))
    log_probs = torch.log_softmax(decoder(memory, inputs).scores[0], dim=-1)
    return sum(float(log_probs[place, token]) for place, token in enumerate([*tokens, EOS]))


@torch.no_grad()
def test_a_wide_beam_finds_all_orders_best_first(decoder, memory):
    found = BeamSearch(beam_size=40, n_best=40, length_penalty=0.0)(decoder, memory, None, [Bag(SOURCE, EOS)])
    for row, (hypotheses, bag) in enumerate(zip(found, BAGS)):
        ours = memory.select(torch.tensor([row]))
        orders = sorted((log_prob(decoder, ours, each), each) for each in set(itertools.permutations(bag)))[::-1]
        assert [tuple(one.tokens) for one in hypotheses] == [tokens for _, tokens in orders]
        assert [one.score for one in hypotheses] == pytest.approx([score for score, _ in orders], abs=1e-9)


@torch.no_grad()
def test_even_a_narrow_beam_and_chance_use_each_token_as_often_as_the_source(decoder, memory):
    for search in (BeamSearch(beam_size=1), BeamSearch(beam_size=2), Sampling(n_best=3, seed=1)):
        found = search(decoder, memory, None, [Bag(SOURCE, EOS)])
        assert all(Counter(one.tokens) == Counter(bag) for each, bag in zip(found, BAGS) for one in each)
        assert all(found)


@torch.no_grad()
def test_a_prefix_is_taken_from_the_bag_and_one_of_other_tokens_leaves_no_output(decoder, memory):
    prefix = Padded(torch.tensor([[5, 8], [4, 0], [6, 0]]), torch.tensor([2, 1, 1]))
    first, second, third = BeamSearch(beam_size=9, n_best=9)(decoder, memory, prefix, [Bag(SOURCE, EOS)])
    assert {tuple(one.tokens) for one in first} == {(5, 8, 5, 6), (5, 8, 6, 5)}
    assert [one.tokens for one in second] == [[4, BOS]]
    assert third == []


def test_a_bag_needs_room_for_all_of_it_and_the_end():
    start = Bag(SOURCE, EOS).start
    assert start(3, torch.tensor([5, 3, 4]))["left"].tolist() == [[5, 6, 5, 8], [BOS, 4, -1, -1], [7, 7, 7, -1]]
    with pytest.raises(SeqloomError, match="maximum_length"):
        start(3, torch.tensor([5, 2, 4]))


def test_numpy_and_torch_forbid_the_same():
    ours, theirs = Bag(SOURCE, EOS), Bag(Padded(SOURCE.values.numpy(), SOURCE.lengths.numpy()), EOS)
    limit, scores = torch.tensor([9, 9, 9]), torch.randn(3, 9)
    one, other = ours.start(3, limit), theirs.start(3, limit.numpy())
    for token in (torch.tensor(each) for each in ([BOS] * 3, [5, 4, 7], [5, BOS, 7], [8, EOS, 6])):
        one, other = ours.step(token, one), theirs.step(token.numpy(), other)
        forbidden = ours.forbid(scores.clone(), one), theirs.forbid(scores.numpy().copy(), other)
        np.testing.assert_array_equal(forbidden[0].numpy(), forbidden[1])
    allowed = [row.isfinite().nonzero()[:, 0].tolist() for row in forbidden[0]]
    assert allowed == [[6], [], []]  # one token left; after the end; after a token that is not in the bag


def test_the_task_of_pairs_with_a_bag_constrains_its_outputs():
    codec = Text(units="word", size=9).fit(["a b c"])
    task = Pairs(source=codec, target=codec, joint=True, bag=True)
    (bag,) = task.constraints(SOURCE)
    assert isinstance(bag, Bag)
    assert Pairs(source=codec, target=codec, joint=True).constraints(SOURCE) == []
    with pytest.raises(ValueError, match="joint = true"):
        Pairs(source=codec, target=codec, bag=True)


def test_ctranslate2_refuses_a_bag_and_last_scores():
    with pytest.raises(SeqloomError, match="Bag"):
        suppressed([Bag(SOURCE, EOS)])
    with pytest.raises(SeqloomError, match="rank_by"):
        supported(BeamSearch(rank_by="last"))
    assert supported(BeamSearch())


def test_a_model_with_a_bag_answers_with_the_words_of_its_source_unknown_ones_too():
    codec = Text(units="word", size=9).fit(["a b c d"])
    task = Pairs(source=codec, target=codec, joint=True, bag=True)
    recipe = {"search": {"type": "beam", "beam_size": 2}, "decoder": {"type": "recurrent"}}
    model = tiny_model(codec.vocabulary)
    answers = Predictor(System(model, task, recipe)).predict(["d b a", "c c", "a new word", "b"])
    assert [sorted(each.split()) for each in answers] == [["a", "b", "d"], ["c", "c"], ["a", "⁇", "⁇"], ["b"]]
    explained = Predictor(System(model, task, recipe)).explain("d b a", n_best=2)
    assert {tuple(sorted(each.text.split())) for each in explained.hypotheses} == {("a", "b", "d")}
    free = Predictor(System(model, Pairs(source=codec, target=codec, joint=True), recipe))
    assert any(isinstance(each, Banned) and UNK in each.tokens for each in build_constraints(free.system, None))


def tiny_model(vocabulary):
    settings = {"vocabulary": vocabulary, "bos": 2, "eos": 3}
    return Model(build(Encoder, vocabulary=vocabulary), build(Decoder, **settings)).float()


def test_bigrams_in_a_bag():
    """The best order by a table of bigrams, found by enumeration, is what the search finds."""
    decoder, memory = bigrams.Bigrams(length_offset=9), bigrams.memory()
    source = Padded(np.array([[4, 5, 6, 7], [8, 4, 0, 0], [5, 6, 7, 0]]), np.array([4, 2, 3]))
    found = BeamSearch(beam_size=30, length_penalty=0.0)(decoder, memory, None, [Bag(source, bigrams.EOS)])

    def worth(row, order):
        total, previous, token = 0.0, 0, bigrams.BOS
        for following in (*order, bigrams.EOS):
            logits = decoder.table[0][token] + decoder.table[1][previous] + memory.states[row, 0]
            total += logits[following] - np.log(np.exp(logits).sum())
            previous, token = token, following
        return total

    for row, (best,) in enumerate(found):
        bag = source.values[row, : source.lengths[row]].tolist()
        expected = max(itertools.permutations(bag), key=lambda order: worth(row, order))
        assert tuple(best.tokens) == expected
        assert best.score == pytest.approx(worth(row, expected))


def test_a_bag_stays_small():
    """Its state has one place per source token, not one per token of the vocabulary."""
    state = Bag(SOURCE, EOS).start(3, torch.tensor([9, 9, 9]))
    assert state["left"].shape == (3, 4)
