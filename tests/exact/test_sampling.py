"""What samples are drawn from: after temperature, top_k and top_p, and never more than these allow."""

import math

import numpy as np
import pytest
import torch

from seqloom.search.sample import Sampling

KINDS = pytest.mark.parametrize("kind", [np.asarray, torch.asarray], ids=["numpy", "torch"])
SHARES = np.array([[0.1, 0.4, 0.2, 0.3], [0.3, 0.1, 0.2, 0.4]])
TIED = np.array([[0.125, 0.25, 0.25, 0.25, 0.125]])


def drawn_from(kind, shares, **settings):
    return np.asarray(Sampling(**settings).probabilities(kind(np.log(shares))))


@KINDS
def test_the_likeliest_tokens_are_kept_and_sum_to_one(kind):
    np.testing.assert_allclose(drawn_from(kind, SHARES), SHARES)
    best = np.array([[0, 4, 0, 3], [3, 0, 0, 4]]) / 7
    np.testing.assert_allclose(drawn_from(kind, SHARES, top_k=2), best)
    np.testing.assert_allclose(drawn_from(kind, SHARES, top_p=0.69), best)
    np.testing.assert_allclose(drawn_from(kind, SHARES, top_k=9), SHARES)
    three = np.array([[0, 4, 2, 3], [3, 0, 2, 4]]) / 9
    np.testing.assert_allclose(drawn_from(kind, SHARES, top_p=0.71), three)
    assert drawn_from(kind, SHARES, top_p=0.01).tolist() == [[0, 1, 0, 0], [0, 0, 0, 1]]
    # 4/9 of the three that top_k keeps: the probability that top_p must reach is that of what is left
    np.testing.assert_allclose(drawn_from(kind, SHARES, top_k=3, top_p=0.43), [[0, 1, 0, 0], [0, 0, 0, 1]])
    np.testing.assert_allclose(drawn_from(kind, SHARES, top_k=3, top_p=0.45), best)


@KINDS
def test_the_temperature_comes_first(kind):
    sharper = SHARES**2 / (SHARES**2).sum(1, keepdims=True)
    np.testing.assert_allclose(drawn_from(kind, SHARES, temperature=0.5), sharper)
    alone = np.array([[0.0, 1, 0, 0], [0, 0, 0, 1]])
    np.testing.assert_allclose(drawn_from(kind, SHARES, temperature=0.5, top_p=0.5), alone)
    assert sharper.max() > 0.5 > SHARES.max()


@KINDS
@pytest.mark.parametrize(
    ("settings", "count"), [({"top_p": 0.2}, 1), ({"top_p": 0.3}, 2), ({"top_p": 0.6}, 3), ({"top_p": 0.8}, 4)]
)
def test_top_p_keeps_the_smallest_set_that_reaches_it_also_among_ties(kind, settings, count):
    found = drawn_from(kind, TIED, **settings)[0]
    kept = np.flatnonzero(found)
    assert len(kept) == count
    assert TIED[0, kept].sum() >= settings["top_p"] > TIED[0, kept].sum() - TIED[0, kept].min()
    np.testing.assert_allclose(found[kept], TIED[0, kept] / TIED[0, kept].sum())
    assert set(kept.tolist()) <= {1, 2, 3} or count > 3  # nothing less likely while something likelier is left


@KINDS
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_top_k_keeps_as_many_tokens_as_it_says_also_among_ties(kind, count):
    kept = np.flatnonzero(drawn_from(kind, TIED, top_k=count)[0])
    assert len(kept) == count
    assert set(kept.tolist()) <= {1, 2, 3} or count > 3


@KINDS
def test_forbidden_tokens_stay_forbidden(kind):
    shares = np.array([[0.0, 0.5, 0.0, 0.5]])
    with np.errstate(divide="ignore"):
        for settings in ({}, {"top_k": 3}, {"top_p": 0.9}, {"top_k": 3, "top_p": 0.9, "temperature": 2.0}):
            assert drawn_from(kind, shares, **settings).tolist() == [[0, 0.5, 0, 0.5]]


def test_settings_that_mean_nothing_are_refused():
    for wrong, name in (
        ({"temperature": 0.0}, "temperature"),
        ({"temperature": -1.0}, "temperature"),
        ({"n_best": 0}, "n_best"),
        ({"top_k": -1}, "top_k"),
        ({"argmax_every": -1}, "argmax_every"),
        ({"top_p": 0.0}, "top_p"),
        ({"top_p": 1.1}, "top_p"),
    ):
        with pytest.raises(ValueError, match=name):
            Sampling(**wrong)
    assert math.isclose(Sampling(top_p=1.0).top_p, 1.0)
