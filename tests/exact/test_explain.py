"""An explanation is of the answer of `predict`, and of its allowed alternatives."""

import numpy as np
import pytest
import torch

from seqloom.explain.record import Explanation
from seqloom.inference.system import encode_source
from seqloom.search.beam import BeamSearch
from seqloom.types import Padded
from tests.inference.test_stream import predictor

OFFLINE = "monotonic"
SEED = 4  # a wide beam finds other outputs than a narrow one, with each decoder
SOURCES = ["abcdef", "fa", "ccbb", "facade"]


@pytest.mark.parametrize(("decoder", "width"), [(OFFLINE, 1), (OFFLINE, 2), ("ctc", 1), ("ctc", 2), ("transducer", 2)])
def test_the_answer_comes_first_and_then_the_others_of_a_wide_beam(decoder: str, width: int):
    model, others = predictor(decoder, seed=SEED), 0
    for source in SOURCES:
        found = [(one.text, pytest.approx(one.score)) for one in model.explain(source, beam_size=width).hypotheses]
        (answer,) = model.candidates([source], beam_size=width)[0]
        wide = [(one.text, one.score) for one in model.candidates([source], beam_size=5, n_best=5)[0]]
        assert found == [(answer.text, answer.score), *(one for one in wide if one[0] != answer.text)][:5]
        others += wide[0][0] != answer.text
    assert others  # else a wide beam alone would do


@pytest.mark.parametrize("decoder", [OFFLINE, "ctc"])
def test_the_beam_size_of_the_run_is_the_default(decoder: str):
    model = predictor(decoder, seed=SEED)
    model.recipe["search"]["beam_size"] = 1
    explained = [model.explain(source) for source in SOURCES]
    assert [each.hypotheses[0].text for each in explained] == model.predict(SOURCES)
    assert {each.model["beam"] for each in explained} == {"1 (n-best list: 5)"}
    assert model.explain("fa", n_best=1).model["beam"] == "1"


def test_where_the_beam_is_wide_enough_nothing_is_searched_twice(monkeypatch: pytest.MonkeyPatch):
    model, searched, advance = predictor(OFFLINE, seed=SEED), [], BeamSearch.advance

    def counted(self, *arguments):
        searched.append(self.beam_size)
        return advance(self, *arguments)

    monkeypatch.setattr(BeamSearch, "advance", counted)
    for width in (5, 7):
        assert model.explain("fa", beam_size=width).model["beam"] == str(width)
    assert searched == [5, 7]
    model.explain("fa", beam_size=1)
    assert sorted(searched) == [1, 5, 5, 7]


def marked(explained: Explanation) -> list[str]:
    """The tokens on the marked path of the tree, from the root."""
    path = [index for index, node in enumerate(explained.tree) if node.best]
    assert [explained.tree[index].parent for index in path] == [-1, *path][: len(path)]
    return [explained.tree[index].token for index in path]


def test_the_tree_marks_the_answer_as_far_as_the_beam_kept_it():
    model = predictor(OFFLINE, seed=SEED)
    whole = []
    for source in SOURCES:
        explained = model.explain(source, beam_size=1)
        best = explained.hypotheses[0]
        assert marked(explained) == best.tokens[: len(marked(explained))]
        whole.append(marked(explained) == best.tokens)
        found = [one.text for one in model.candidates([source], beam_size=5, n_best=5)[0]]
        assert whole[-1] == (best.text in found)
    assert set(whole) == {True, False}


@pytest.mark.parametrize("limits", [{}, {"minimum_length": 2, "maximum_length": 4}, {"no_repeat": 1}])
def test_runners_up_are_the_tokens_that_constraints_allow(limits: dict[str, int]):
    model = predictor(OFFLINE, seed=SEED)
    target, decoder = model.task.target, model.model.decoder
    letters = {letter: target.encode(letter)[0] for letter in "abc"} | {"<eos>": decoder.eos}
    for source in SOURCES:
        memory = model.model.encode(
            Padded.stack([encode_source(model.system, source)[0]]).to(model.device), attention=True
        )
        longest = limits.get("maximum_length", int(decoder.limit(memory)))
        for one in model.explain(source, **limits).hypotheses:
            ids = np.array([decoder.bos, *(letters[token] for token in one.tokens[:-1])])
            with torch.no_grad():
                shares = decoder(memory, Padded.stack([ids]).to(model.device)).scores[0].softmax(-1)  # (U, V)
            for place, ranked in enumerate(one.runners_up):
                may = set("abc") - set(one.tokens[:place] if "no_repeat" in limits else ())
                may |= {"<eos>"} if place >= limits.get("minimum_length", 0) else set()
                may = {"<eos>"} if place == longest - 1 else may
                own = {token: float(shares[place, letters[token]]) for token in may}
                assert dict(ranked) == pytest.approx(own, rel=1e-4)
                assert [share for _, share in ranked] == sorted(dict(ranked).values(), reverse=True)


@pytest.mark.parametrize("decoder", ["ctc", "transducer", "neural transducer"])
def test_no_runner_up_of_an_online_decoder_is_forbidden(decoder: str):
    model = predictor(decoder, seed=SEED)
    for source in SOURCES:
        for one in model.explain(source, minimum_length=1, maximum_length=4).hypotheses:
            for place, ranked in enumerate(one.runners_up):
                pieces = [piece for piece, _ in ranked]
                assert set(pieces) <= ({"<eos>"} if place == 3 else {*"abc", *(["<eos>"] if place else [])})
                assert one.tokens[place] in pieces
