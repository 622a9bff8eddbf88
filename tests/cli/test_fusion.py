"""Language models that help to predict, on the command line and in Python."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import seqloom
from seqloom.predictor import Predictor
from tests.cli.conftest import LANGUAGE_MODEL, TEXT, Command, pairs, trained, tsv

SOURCES = ["123", "145", "151"]


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A language model that knows other tokens."""
    return trained(tmp_path_factory.mktemp("other"), LANGUAGE_MODEL, ["abc", "bca", "12"] * 8)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Path:
    recipe = {**LANGUAGE_MODEL, "task": {"type": "text", "target": TEXT, "window": 8}}
    return trained(tmp_path_factory.mktemp("running"), recipe, [target for _, target in pairs()])


def test_a_language_model_in_the_beam(command: Command, translator: Path, language_model: Path) -> None:
    model, lm = seqloom.load(translator, device="cpu"), seqloom.load(language_model, device="cpu")
    assert isinstance(model, Predictor)
    assert isinstance(lm, Predictor)
    plain = model.candidates(SOURCES, n_best=3, length_penalty=0.0)
    fused = model.candidates(SOURCES, n_best=3, length_penalty=0.0, lm=lm, lm_weight=0.8)
    for source, found in zip(SOURCES, fused):
        for one in found:
            both = model.score([(source, one.text)])[0] + 0.8 * lm.score([one.text])[0]
            assert one.score == pytest.approx(both, abs=1e-4)
    assert fused != plain
    assert model.candidates(SOURCES, n_best=3, length_penalty=0.0, lm=lm, lm_weight=0)[0][0].text == plain[0][0].text
    told = command("predict", translator, "--lm", language_model, "--lm-weight", 0.8, "--json", "--set",
                   "length_penalty=0", stdin="123\n145\n151\n")  # fmt: skip
    lines = [json.loads(line)["outputs"][0] for line in told.out.splitlines()]
    assert [line["text"] for line in lines] == [found[0].text for found in fused]
    assert [line["score"] for line in lines] == pytest.approx([found[0].score for found in fused], abs=1e-5)


def test_outputs_ranked_anew(command: Command, translator: Path, language_model: Path, other: Path) -> None:
    model = seqloom.load(translator, device="cpu")
    every = model.candidates(SOURCES, n_best=3)
    for path in (language_model, other):  # its tokens need not be those of the run
        lm = seqloom.load(path, device="cpu")
        assert isinstance(lm, Predictor)
        found = model.candidates(SOURCES, n_best=2, rescore=path, rescore_weight=0.4)
        for ours, listed in zip(found, every):
            expected = sorted(((one.score + 0.4 * lm.score([one.text])[0], one.text) for one in listed), reverse=True)
            assert [one.text for one in ours] == [text for _, text in expected[:2]]
            assert [one.score for one in ours] == pytest.approx([score for score, _ in expected[:2]], abs=1e-5)
        told = command("predict", translator, "--rescore", path, "--rescore-weight", 0.4, stdin="123\n145\n151\n")
        assert told.out.splitlines() == [each[0].text for each in found]
        assert model.predict(SOURCES, rescore=lm, rescore_weight=0.4) == [each[0].text for each in found]


def test_evaluation_takes_them_too(command: Command, translator: Path, language_model: Path) -> None:
    data = tsv(rows=pairs(6))
    model = seqloom.load(translator, device="cpu")
    for options, wishes in (
        (["--lm", language_model, "--lm-weight", 2.0], {"lm": language_model, "lm_weight": 2.0}),
        (["--rescore", language_model], {"rescore": language_model, "rescore_weight": 0.3}),
    ):
        said = json.loads(command("evaluate", translator, "--data", data, *options).out)
        expected = {name: round(value, 4) for name, value in model.evaluate(pairs(6), **wishes).items()}
        assert said == {"examples": 6, **expected}


def test_a_running_text_helps_too(translator: Path, running: Path) -> None:
    model = seqloom.load(translator, device="cpu")
    assert len(model.predict(SOURCES, lm=running)) == 3
    assert len(model.predict(SOURCES, rescore=running)) == 3


def test_mistakes(command: Command, translator: Path, language_model: Path, other: Path) -> None:
    def complaint(*options: object) -> str:
        return command("predict", translator, *options, stdin="123\n").complaint

    assert "vocabulary is not that of this run" in complaint("--lm", other)
    assert "reads a source" in complaint("--lm", translator)
    assert "lm_weight = -1.0" in complaint("--lm", language_model, "--lm-weight", -1)
    assert "rescore_weight = -1.0" in complaint("--rescore", language_model, "--rescore-weight", -1)
    assert "--lm-weight = 0.5: there is nothing to weigh" in complaint("--lm-weight", 0.5)
    assert "--rescore-weight = 0.5: there is nothing to weigh" in complaint("--rescore-weight", 0.5)
    assert "nowhere" in complaint("--lm", "nowhere")
