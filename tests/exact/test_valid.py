"""Valid outputs of places: the search against the enumeration of all of them, over a real pointer network."""

from itertools import combinations, permutations

import numpy as np
import pytest
import torch

from seqloom.data.codecs.numbers import Numbers
from seqloom.data.codecs.places import FIRST, Places
from seqloom.data.codecs.text import Text
from seqloom.data.special_tokens import BOS, EOS
from seqloom.errors import SeqloomError
from seqloom.nn.decoders.pointer import Pointer
from seqloom.search.beam import BeamSearch
from seqloom.search.constraints.ring import Ring
from seqloom.search.constraints.tour import Tour
from seqloom.search.constraints.triangles import Triangles
from seqloom.search.sample import Sampling
from seqloom.tasks.pairs import Pairs
from seqloom.types import Padded
from tests.building import OF_VECTORS, build, memory_for

LENGTHS = (5, 3, 4)


def orders(number):
    return list(permutations(range(number)))


def tours(number):
    return [(0, *order, 0) for order in permutations(range(1, number))]


def rings(number):
    sizes = range(3, number + 1)
    return [(*corners, corners[0]) for size in sizes for corners in permutations(range(number), size)]


def triangulations(number, most):
    """Up to so many triangles, in any order."""
    triples = list(combinations(range(number), 3))
    counts = range(1, min(most, len(triples)) + 1)
    return [sum(chosen, ()) for count in counts for chosen in permutations(triples, count)]


@pytest.fixture(params=[{}, {"glimpses": 1}], ids=["pointer", "glimpses"])
def decoder(request):
    """Outputs have up to 8 tokens of 5 elements, the end included: rings of all, two triangles."""
    made = build(Pointer, vocabulary=FIRST, length_ratio=0.0, length_offset=8, **OF_VECTORS, **request.param)
    for parameter in made.parameters():
        parameter.data *= 3
    return made


@pytest.fixture
def memory(decoder):
    return memory_for(decoder, LENGTHS)


def constraints(valid, lengths=LENGTHS):
    task = Pairs(source=Numbers(), target=Places(), valid=valid)
    return task.constraints(Padded(np.zeros((len(lengths), max(lengths), 4), np.float32), np.array(lengths)))


ALL = {
    "order": orders,
    "tour": tours,
    "ring": rings,
    "triangles": lambda number: triangulations(number, 2),
}


def log_prob(decoder, memory, places):
    tokens = [FIRST + place for place in places]
    inputs = Padded(torch.tensor([[BOS, *tokens]]), torch.tensor([len(tokens) + 1]))
    log_probs = torch.log_softmax(decoder(memory, inputs).scores[0], dim=-1)
    return sum(float(log_probs[place, token]) for place, token in enumerate([*tokens, EOS]))


def places(hypothesis):
    return tuple(token - FIRST for token in hypothesis.tokens)


@torch.no_grad()
@pytest.mark.parametrize("valid", ALL)
def test_a_beam_as_wide_as_all_valid_outputs_finds_them_all_best_first(valid, decoder, memory):
    search = BeamSearch(beam_size=310, n_best=310, length_penalty=0.0)
    for row, (found, number) in enumerate(zip(search(decoder, memory, None, constraints(valid)), LENGTHS)):
        ours = memory.select(torch.tensor([row]))
        expected = sorted(((log_prob(decoder, ours, each), each) for each in ALL[valid](number)), reverse=True)
        assert [places(one) for one in found] == [each for _, each in expected]
        assert [one.score for one in found] == pytest.approx([score for score, _ in expected], abs=1e-9)


@torch.no_grad()
@pytest.mark.parametrize("valid", ALL)
def test_even_narrow_beams_and_samples_obey(valid, decoder, memory):
    for search in (BeamSearch(beam_size=1), BeamSearch(beam_size=2), Sampling(n_best=8, seed=1)):
        for found, number in zip(search(decoder, memory, None, constraints(valid)), LENGTHS):
            assert {places(one) for one in found} <= {*ALL[valid](number)}
            assert found
    free = Sampling(n_best=20, seed=1)(decoder, memory)[0]
    assert not {places(one) for one in free} <= {*ALL[valid](5)}  # unconstrained outputs break the rule


@torch.no_grad()
def test_triangles_go_on_until_there_are_no_more():
    decoder = build(Pointer, vocabulary=FIRST, length_offset=30, **OF_VECTORS)
    decoder.end.data.fill_(-9.0)  # it would rather not end
    memory = memory_for(decoder, (4, 3))
    for search in (BeamSearch(beam_size=1), BeamSearch(beam_size=5), Sampling(n_best=5, seed=2)):
        for found, number in zip(search(decoder, memory, None, constraints("triangles", (4, 3))), (4, 3)):
            everything = {*triangulations(number, 9)}
            assert all(places(one) in everything for one in found)


@torch.no_grad()
def test_a_beginning_counts_and_one_that_breaks_the_rule_leaves_no_output(decoder, memory):
    begun = [[0, 2], [1], [3, 3]]
    prefix = Padded.stack([torch.tensor(each) + FIRST for each in begun])
    first, second, third = BeamSearch(beam_size=40, n_best=40)(decoder, memory, prefix, constraints("ring"))
    assert {places(one) for one in first} == {each for each in rings(5) if each[:2] == (0, 2)}
    assert {places(one) for one in second} == {(1, 0, 2, 1), (1, 2, 0, 1)}
    assert third == []
    begun = [[0, 1, 2, 0], [0, 1, 2], [1, 2, 3]]
    prefix = Padded.stack([torch.tensor(each) + FIRST for each in begun])
    first, second, third = BeamSearch(beam_size=40, n_best=40)(decoder, memory, prefix, constraints("triangles"))
    assert {places(one) for one in first} == {(0, 1, 2, 0, *rest) for rest in combinations((1, 2, 3, 4), 2)} - {
        (0, 1, 2, 0, 1, 2)
    }
    assert {places(one) for one in second} == {(0, 1, 2)}
    assert {places(one) for one in third} == {each for each in triangulations(4, 2) if each[:3] == (1, 2, 3)}
    assert BeamSearch()(decoder, memory, Padded.stack([torch.tensor([5])] * 3), constraints("tour")) == [[], [], []]


@pytest.mark.parametrize("rule", [Tour, Ring, Triangles])
def test_numpy_and_torch_forbid_the_same(rule):
    chance = np.random.default_rng(1)
    lengths = np.array([5, 3, 4] * 10)
    values = np.zeros((30, 5))
    ours = rule(Padded(torch.tensor(values), torch.tensor(lengths)), FIRST, EOS)
    theirs = rule(Padded(values, lengths), FIRST, EOS)
    limit, scores = np.full(30, 17), chance.normal(size=(30, FIRST + 5))
    one, other = ours.start(30, torch.tensor(limit)), theirs.start(30, limit)
    token = np.full(30, BOS)
    for _ in range(5):
        one, other = ours.step(torch.tensor(token), one), theirs.step(token, other)
        left, right = ours.forbid(torch.tensor(scores), one), theirs.forbid(scores.copy(), other)
        np.testing.assert_array_equal(left.numpy(), right)
        token = np.where(chance.random(30) < 0.9, right.argmax(1), chance.integers(EOS, FIRST + 5, 30))
    assert np.isinf(right).all(1).any()  # a row that was given what is not allowed
    assert np.isfinite(right).any(1).any()


@pytest.mark.parametrize("valid", ["order", "tour", "ring", "triangles"])
def test_an_output_needs_room(valid):
    (rule,) = constraints(valid, (6, 3))
    least = {"order": [7, 4], "tour": [8, 5], "ring": [5, 5], "triangles": [4, 4]}[valid]
    rule.start(2, torch.tensor(least))
    with pytest.raises(SeqloomError, match="maximum_length"):
        rule.start(2, torch.tensor(least) - torch.tensor([0, 1]))


@pytest.mark.parametrize("valid", ["ring", "triangles"])
def test_two_points_are_neither_a_ring_nor_a_triangle(valid):
    (rule,) = constraints(valid, (6, 2))
    with pytest.raises(SeqloomError, match="needs 3 elements or more, and a source has 2"):
        rule.start(2, torch.tensor([30, 30]))


def test_only_places_are_valid():
    with pytest.raises(ValueError, match=r'target\.type = "places"'):
        Pairs(source=Numbers(), target=Text(), valid="tour")
    assert Pairs(source=Numbers(), target=Places(), valid="tour").constrained
    assert not Pairs(source=Numbers(), target=Places()).constrained
