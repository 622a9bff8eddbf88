"""No n-gram twice: an output's own tokens count, and nothing that stands before them."""

import itertools

import numpy as np
import pytest
import torch

from seqloom.search.beam import BeamSearch
from seqloom.search.constraints.no_repeat import NoRepeat
from seqloom.types import Padded
from tests.exact.bigrams import VOCABULARY, Bigrams, memory

BOS = 2
KINDS = pytest.mark.parametrize("kind", [np.asarray, torch.asarray], ids=["numpy", "torch"])


def forbidden(kind, length, tokens):
    """What may not follow these tokens of an output."""
    constraint = NoRepeat(length)
    state = constraint.start(1, kind(np.array([20])))
    for token in [BOS, *tokens]:
        state = constraint.step(kind(np.array([token])), state)
    scores = constraint.forbid(kind(np.zeros((1, VOCABULARY))), state)
    return np.flatnonzero(np.asarray(scores)[0] == -np.inf).tolist()


@KINDS
@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_what_would_repeat_an_n_gram_may_not_follow(kind, length):
    """Every output of up to five of three tokens, BOS, which is an ordinary token once it is written, among them."""
    for tokens in itertools.chain.from_iterable(itertools.product((BOS, 4, 5), repeat=size) for size in range(6)):
        grams = {tokens[place : place + length] for place in range(len(tokens) - length + 1)}
        context = tokens[len(tokens) - length + 1 :]
        expected = [token for token in range(VOCABULARY) if len(context) == length - 1 and (*context, token) in grams]
        assert forbidden(kind, length, tokens) == expected


@KINDS
@pytest.mark.parametrize("length", [1, 2, 3])
def test_prefixes_of_different_lengths_leave_nothing_behind_in_shorter_ones(kind, length):
    """Also not the token 0, with which shorter prefixes are padded."""
    whole = memory()
    given = whole if kind is np.asarray else type(whole)(kind(whole.states), kind(whole.lengths))
    prefixes = [[4, 0, 4], [0], []]
    padded = np.array([[*each, 0, 0, 0][:3] for each in prefixes])
    lengths = np.array([3, 1, 0])
    search = BeamSearch(beam_size=6, n_best=6, no_repeat=length)
    together = search(Bigrams(length_offset=5), given, Padded(kind(padded), kind(lengths)))
    for row, tokens in enumerate(prefixes):
        place = kind(np.array([row]))
        own = Padded(kind(np.array([tokens], dtype=np.int64).reshape(1, -1)), kind(np.array([len(tokens)])))
        (alone,) = search(Bigrams(length_offset=5), given.select(place), own)
        assert [one.tokens for one in together[row]] == [one.tokens for one in alone]
    written = {token for one in together[2] for token in one.tokens}
    assert length > 1 or {0, BOS} & written  # nothing of this is forbidden beforehand
