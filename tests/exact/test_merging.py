"""Merging: what becomes of the states, scores and totals of hypotheses that turn out to be the same output."""

import math

import numpy as np
import pytest
import torch

from seqloom.nn.decoders.ctc import CTC
from seqloom.search.merging import Group, extend_key, merge, merge_halves
from seqloom.search.prefix_beam import PrefixBeam
from seqloom.types import Memory, Padded
from tests.building import build
from tests.exact import online
from tests.exact.online import BOS, EOS, VOCABULARY, Frames

NEVER = float("-inf")
WIDE = 200


def group(totals, keys, ends):
    """One source, whose rows carry a share "ends" and probabilities of two next tokens that follow from it."""
    ends = np.array(ends)
    scores = np.log(np.stack([ends, 1 - ends], 1))
    rows = {"key": np.array(keys), "state": {"place": np.arange(len(keys)), "mixture": {"ends": ends}}}
    return Group({**rows, "scores": scores}, np.log(np.array([totals])))


def halves(one, other):
    """Two groups of one source as the halves of one."""
    joined = {
        "key": np.concat([one.rows["key"], other.rows["key"]]),
        "state": {
            "place": np.concat([one.rows["state"]["place"], other.rows["state"]["place"]]),
            "mixture": {"ends": np.concat([each.rows["state"]["mixture"]["ends"] for each in (one, other)])},
        },
        "scores": np.concat([one.rows["scores"], other.rows["scores"]]),
    }
    return Group(joined, np.concat([one.totals, other.totals], 1))


@pytest.mark.parametrize("in_halves", [False, True])
def test_equal_outputs_become_one_with_the_mean_of_both_weighted_by_probability(in_halves):
    old, new = group([0.5, 0.2], [7, 8], [0.9, 0.3]), group([0.1, 0.15], [9, 7], [0.4, 0.1])
    merged = merge_halves(halves(old, new), 3) if in_halves else merge(old, new, 3)
    np.testing.assert_allclose(np.exp(merged.totals), [[0.65, 0.2, 0.1]])
    assert merged.rows["key"].tolist() == [7, 8, 9]
    assert merged.rows["state"]["place"].tolist() == [0, 1, 0]  # all else is that of the likelier one
    expected = np.array([(0.5 * 0.9 + 0.15 * 0.1) / 0.65, 0.3, 0.4])
    np.testing.assert_allclose(merged.rows["state"]["mixture"]["ends"], expected)
    np.testing.assert_allclose(np.exp(merged.rows["scores"]), np.stack([expected, 1 - expected], 1))


def test_the_likelier_one_may_stand_in_the_second_group():
    old, new = group([0.1, 0.2], [7, 8], [0.9, 0.3]), group([0.1, 0.5], [9, 7], [0.4, 0.1])
    merged = merge(old, new, 4)
    np.testing.assert_allclose(np.exp(merged.totals), [[0.6, 0.2, 0.1, 0.0]])
    assert merged.rows["state"]["place"].tolist()[:3] == [1, 1, 0]
    np.testing.assert_allclose(merged.rows["state"]["mixture"]["ends"][0], (0.1 * 0.9 + 0.5 * 0.1) / 0.6)


def test_rows_that_are_not_live_match_nothing():
    old, new = group([0.5, 0.2], [7, 8], [0.9, 0.3]), group([0.1, 0.15], [9, 7], [0.4, 0.1])
    old.totals[0, 0] = NEVER
    merged = merge(old, new, 3)
    np.testing.assert_allclose(np.exp(merged.totals), [[0.2, 0.15, 0.1]])
    assert merged.rows["key"].tolist() == [8, 7, 9]
    np.testing.assert_allclose(merged.rows["state"]["mixture"]["ends"], [0.3, 0.1, 0.4])


def test_keys_tell_outputs_apart():
    outputs = [(), (0,), (0, 0), (1, 0), (0, 1), (1, 0, 0), (0, 1, 0)]
    keys = set()
    for tokens in outputs:
        key = np.array([0])
        for token in tokens:
            key = extend_key(key, np.array([token]))
        keys.add(int(key[0]))
    assert len(keys) == len(outputs)


@pytest.mark.parametrize("tensors", [False, True])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_over_many_frames_every_output_has_the_probability_of_all_its_labellings(seed, tensors):
    """What was merged goes on: the shares of paths that end in a token matter two frames later."""
    memory = online.memory((6, 5), seed=seed)
    given = Memory(torch.from_numpy(memory.states), torch.from_numpy(memory.lengths)) if tensors else memory
    found = PrefixBeam(beam_size=WIDE, n_best=WIDE)(Frames(), given)
    for number, hypotheses in enumerate(found):
        expected = online.paths(Frames(), online.source(memory, number), 1)
        scores = {tuple(one.tokens): one.score for one in hypotheses}
        assert scores == pytest.approx({tokens: math.log(each) for tokens, each in expected.items()}, abs=1e-9)


@torch.no_grad()
def test_a_wide_beam_gives_every_output_of_ctc_the_probability_that_is_trained():
    decoder = build(CTC, vocabulary=VOCABULARY)
    states = torch.randn(1, 5, 8, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    memory = decoder.prepare(Memory(2 * states, torch.tensor([5])))
    found = PrefixBeam(beam_size=WIDE, n_best=WIDE)(decoder, memory)[0]
    assert len(found) == 148  # all that five frames can write with three tokens
    for one in found:
        inputs = Padded(torch.tensor([[BOS, *one.tokens]]), torch.tensor([len(one.tokens) + 1]))
        targets = Padded(torch.tensor([[*one.tokens, EOS]]), inputs.lengths)
        assert one.score == pytest.approx(float(decoder.log_prob(memory, inputs, targets)), abs=1e-9)
