"""Vectors of sources: pooling by the formula, the same in any batch, and the nearest of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from seqloom.errors import SeqloomError
from seqloom.inference.embedding import embed, similar
from seqloom.types import Padded
from tests.exact.test_masked import CODEC, model, system

TEXTS = ["w1 w2 w3", "w4", "w5 w6 w7 w8 w9 w1 w2", "w4 w4"]


def states(text: str) -> torch.Tensor:
    ours = system(model().float())
    tokens = ours.task.framed(CODEC.encode(text))
    return ours.model.encode(Padded.stack([tokens]).to("cpu")).states[0].detach()


@pytest.mark.parametrize(
    ("pooling", "expected"),
    [("mean", lambda found: found.mean(0)), ("first", lambda found: found[0]), ("max", lambda found: found.amax(0))],
)
def test_vectors_are_pooled_states_whatever_is_embedded_beside_them(pooling, expected):
    found = embed(system(model().float()), TEXTS, pooling=pooling)
    assert found.dtype == np.float32
    for text, vector in zip(TEXTS, found):
        np.testing.assert_allclose(vector, expected(states(text)), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(
            embed(system(model().float()), [text], pooling=pooling)[0], vector, rtol=1e-4, atol=1e-5
        )


def test_normalised_vectors_have_length_one_and_cosines_are_their_products():
    ours = system(model().float())
    found = embed(ours, TEXTS, normalise=True)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=1e-6)
    ranked = similar(ours, TEXTS[0], TEXTS, n_best=3)
    assert ranked[0] == (pytest.approx(1, abs=1e-5), 0)
    cosines = found @ found[0]
    assert [number for _, number in ranked] == np.argsort(-cosines, kind="stable")[:3].tolist()
    assert [cosine for cosine, _ in ranked] == pytest.approx(np.sort(cosines)[::-1][:3].tolist(), abs=1e-5)


def test_no_sources_have_no_vectors():
    assert embed(system(model().float()), []).shape == (0, 16)


@pytest.mark.parametrize(
    ("texts", "options", "wrong"),
    [
        (["w1", ""], {}, "source 2 is empty"),
        (["w1 " * 60], {}, "source 1 has 60 tokens; expected at most 46"),
        (["w1"], {"pooling": "maen"}, "pooling"),
    ],
)
def test_what_cannot_be_embedded_is_refused(texts, options, wrong):
    with pytest.raises(SeqloomError, match=wrong):
        embed(system(model().float()), texts, **options)


def test_long_sources_can_be_cut():
    ours = system(model().float())
    cut = embed(ours, ["w1 " * 60], truncate=True)
    np.testing.assert_allclose(cut, embed(ours, ["w1 " * 46]), rtol=1e-5)
