"""A run the other way round that helps to predict, on the command line and in Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import seqloom
from seqloom.predictor import Predictor
from tests.cli.conftest import LANGUAGE_MODEL, TRANSLATOR, Command, pairs, trained, tsv

SSNT: dict[str, Any] = {
    **TRANSLATOR,
    "search": {"type": "prefix_beam", "beam_size": 4, "symbols_per_state": 3},
    "objective": {"type": "marginal"},
    "encoder": {**TRANSLATOR["encoder"], "bidirectional": True},
    "decoder": {"type": "ssnt", "size": 16, "embedding_size": 8, "hidden": 8},
}
ONE_WAY = {**SSNT, "encoder": TRANSLATOR["encoder"]}
SOURCES = ["123", "145", "151"]
ASKED = "123\n145\n151\n"


def letters(count: int = 60) -> list[tuple[str, str]]:
    """Numbers and the same in letters."""
    return [(number, number.translate(str.maketrans("0123456789", "abcdefghij"))) for number, _ in pairs(count)]


@pytest.fixture(scope="module")
def direct(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("direct"), SSNT, letters())


@pytest.fixture(scope="module")
def channel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """It has seen other examples: its tokens are in another order."""
    swapped = [(target, source) for source, target in reversed(letters(80))]
    return trained(tmp_path_factory.mktemp("channel"), ONE_WAY, swapped)


@pytest.fixture(scope="module")
def lm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("lm"), LANGUAGE_MODEL, [target for _, target in letters(200)])


def loaded(path: Path) -> Predictor:
    model = seqloom.load(path, device="cpu")
    assert isinstance(model, Predictor)
    return model


def test_outputs_are_worth_what_all_say(command: Command, direct: Path, channel: Path, lm: Path) -> None:
    model, back, text = loaded(direct), loaded(channel), loaded(lm)
    weights = {"channel_weight": 0.7, "length_bonus": 0.2, "lm_weight": 0.4}
    search: dict[str, Any] = {"beam_size": 60, "n_best": 3}
    found = model.candidates(SOURCES, channel=back, lm=text, proposals=16, **weights, **search)
    for source, outputs in zip(SOURCES, found):
        for one in outputs:
            worth = model.score([(source, one.text)])[0] + 0.7 * back.score([(one.text, source)])[0]
            worth += 0.4 * text.score([one.text])[0] + 0.2 * len(one.text)
            assert one.score == pytest.approx(worth, abs=0.05)  # a way or two is lost in the beam
    assert found != model.candidates(SOURCES, lm=text, lm_weight=0.4, **search)
    told = command("predict", direct, "--channel", channel, "--channel-weight", 0.7, "--length-bonus", 0.2, "--lm", lm,
                   "--lm-weight", 0.4, "--beam-size", 60, "--n-best", 3, stdin=ASKED)  # fmt: skip
    lines = [json.loads(line)["outputs"] for line in told.out.splitlines()]
    assert [line[0]["text"] for line in lines] == [outputs[0].text for outputs in found]


def test_evaluation_takes_it_too(command: Command, direct: Path, channel: Path) -> None:
    said = json.loads(command("evaluate", direct, "--data", tsv(rows=letters(6)), "--channel", channel).out)
    expected = loaded(direct).evaluate(letters(6), channel=channel)
    assert said == {"examples": 6, **{name: round(value, 4) for name, value in expected.items()}}


def test_any_run_the_other_way_round_ranks_anew(command: Command, translator: Path) -> None:
    model = loaded(translator)  # numbers backwards: both ways are the same
    every = model.candidates(SOURCES, n_best=3)
    found = model.candidates(SOURCES, n_best=2, rescore=translator, rescore_weight=0.4)
    for source, ours, listed in zip(SOURCES, found, every):
        worth = sorted(
            ((one.score + 0.4 * model.score([(one.text, source)])[0], one.text) for one in listed), reverse=True
        )
        assert [one.text for one in ours] == [text for _, text in worth[:2]]
        assert [one.score for one in ours] == pytest.approx([score for score, _ in worth[:2]], abs=1e-5)
    told = command("predict", translator, "--rescore", translator, "--rescore-weight", 0.4, stdin=ASKED)
    assert told.out.splitlines() == [each[0].text for each in found]


def test_mistakes(command: Command, direct: Path, channel: Path, lm: Path, translator: Path) -> None:
    def complaint(run: Path, *options: object) -> str:
        return command("predict", run, *options, stdin="123\n").complaint

    assert "is a language model" in complaint(direct, "--channel", lm)
    assert "does not read the tokens that this run writes" in complaint(direct, "--channel", direct)
    assert "reads all before it writes" in complaint(translator, "--channel", translator)
    assert "is a language model and reads no source" in complaint(lm, "--channel", channel)
    assert "channel_weight = -1.0" in complaint(direct, "--channel", channel, "--channel-weight", -1)
    assert "--channel-weight = 0.5: there is nothing to weigh" in complaint(direct, "--channel-weight", 0.5)
    assert "--length-bonus = 0.5: goes with a noisy channel" in complaint(direct, "--length-bonus", 0.5)
    assert "one state per token" in complaint(channel, "--channel", direct)
