"""Stories and questions on the command line."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import seqloom
from seqloom.config.recipes import read_recipe
from seqloom.data.generators.whereabouts import whereabouts
from seqloom.errors import SeqloomError
from seqloom.train.display import Display
from tests.cli.conftest import Command, trained, tsv
from tests.cli.test_mistakes import says
from tests.cli.test_use import fine

PAIRS = [(example.source, example.target) for example in whereabouts(80, facts=1)]
STORY = "Mary went to the garden. John went to the office. Where is Mary?"


def small(name: str) -> dict[str, Any]:
    recipe = read_recipe(name)
    recipe["encoder"] |= {"size": 8}
    recipe["train"] |= {"epochs": 4, "validate_every": 0, "device": "cpu", "log_every": 1}
    return recipe


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("network"), small("babi"), PAIRS)


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("reader"), small("cloze"), PAIRS)


@pytest.fixture(params=["network", "reader"])
def run(request: pytest.FixtureRequest) -> Path:
    found: Path = request.getfixturevalue(request.param)
    return found


class TestARun:
    def test_a_story_in_is_a_word_out(self, command: Command, run: Path) -> None:
        (line,) = fine(command("predict", run, stdin=STORY)).out.splitlines()
        model = seqloom.load(run)
        sentences = ["Mary went to the garden.", "John went to the office.", "Where is Mary?"]
        assert model.predict([STORY]) == model.predict([sentences]) == [line]
        assert model.predict([STORY, PAIRS[0][0]])[0] == line  # whatever stands beside it

    def test_it_is_measured_and_scored(self, command: Command, run: Path) -> None:
        data = tsv(rows=PAIRS[:20])
        model = seqloom.load(run)
        right = sum(model.predict([source]) == [target] for source, target in PAIRS[:20])
        assert json.loads(fine(command("evaluate", run, "--data", data)).out) == {"examples": 20, "exact": 5.0 * right}
        best, *_ = model.explain(STORY).hypotheses
        assert model.score([(STORY, best.text)])[0] == pytest.approx(best.score, abs=1e-5)

    def test_an_answer_has_its_log_probability_and_others_after_it(self, command: Command, run: Path) -> None:
        found = json.loads(fine(command("predict", run, "--n-best", "2", stdin=STORY)).out)["outputs"]
        model = seqloom.load(run)
        for one, seen in zip(found, model.explain(STORY, n_best=2).hypotheses, strict=True):
            assert one["text"] == seen.text
            assert one["score"] == pytest.approx(seen.score, abs=1e-5)
            assert one["log_probs"] == [one["score"]]
            assert model.score([(STORY, one["text"])])[0] == pytest.approx(one["score"], abs=1e-5)

    def test_mistakes_are_one_line(self, command: Command, run: Path) -> None:
        long = "Mary went to the very large and sunny garden. Where is Mary?"
        says(command("predict", run, stdin=f"{STORY}\n\n{long}").complaint, "standard input, line 3", "has 9 words")
        says(command("predict", run, "--prefix", "a", stdin=STORY).complaint, "answers at once", "prefix")
        says(command("explain", run, STORY, "--beam-size", "3").complaint, "answers at once", "beam_size")


class TestLookingInside:
    def test_hops_are_shown_sentence_by_sentence(self, command: Command, network: Path) -> None:
        shown = fine(command("explain", network, STORY)).out
        assert "attention: sentences down, hops across" in shown
        assert "alignment:" not in shown
        found = seqloom.load(network).explain(STORY)
        assert found.source == ["mary went to the garden", "john went to the office", "where is mary"]
        hops = found.hypotheses[0].source_attention
        assert len(hops) == 3
        for heads in hops:
            assert sum(heads[0][0][:2]) == pytest.approx(1)
            assert heads[0][0][2] == 0
        assert [one.score for one in found.hypotheses] == sorted((one.score for one in found.hypotheses), reverse=True)
        fine(command("explain", network, STORY, "--out", "page.html"))
        assert "storyView" in Path("page.html").read_text()

    def test_a_reader_shows_the_words_it_looked_at(self, command: Command, reader: Path) -> None:
        found = seqloom.load(reader).explain(STORY)
        assert found.source == ["mary", "went", "to", "the", "garden", "john", "went", "to", "the", "office"]
        assert sum(found.attention[0]) == pytest.approx(1)
        best = found.hypotheses[0]
        merged = sum(share for word, share in zip(found.source, found.attention[0]) if word == best.text)
        assert best.score == pytest.approx(math.log(merged), abs=1e-4)
        assert "alignment:" in fine(command("explain", reader, STORY)).out

    def test_a_reader_without_a_word_to_say_says_nothing(self, command: Command, reader: Path) -> None:
        for story in ("Where is Mary?", "Zork. Where is Mary?"):
            (found,) = json.loads(fine(command("predict", reader, "--json", stdin=story)).out)["outputs"]
            assert (found["text"], found["tokens"]) == ("", [])
            assert "none of its words is a possible answer of this run" in command("explain", reader, story).complaint


@pytest.mark.parametrize("name", ["babi", "cloze"])
def test_gradients_are_right(command: Command, name: str) -> None:
    assert "all gradients are right" in fine(command("gradcheck", name, "--set", "encoder.size=4")).out


@pytest.mark.parametrize("name", ["babi", "cloze"])
def test_a_resumed_training_equals_an_unbroken_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Linear start, empty sentences and the schedule are functions of where training stands."""
    monkeypatch.setenv("SEQLOOM_CACHE", str(tmp_path / "cache"))
    recipe = small(name)
    recipe["train"] |= {"epochs": 4, "steps": 12, "threads": 1}

    def interrupt(**values: Any) -> None:
        if values["step"] == 2:
            raise KeyboardInterrupt

    options: dict[str, Any] = {"valid": PAIRS[:10]}
    seqloom.fit(PAIRS, recipe, out=tmp_path / "unbroken", display=Display.quiet(), **options)
    recipe["train"]["checkpoint_every"] = 1
    display = Display.quiet()
    display.update = interrupt  # type: ignore[method-assign, assignment]
    with pytest.raises(KeyboardInterrupt):
        seqloom.fit(PAIRS, recipe, out=tmp_path / "broken", display=display, **options)
    seqloom.fit(PAIRS, recipe, out=tmp_path / "broken", display=Display.quiet(), resume=True, **options)
    one, other = ((tmp_path / each / "model.safetensors").read_bytes() for each in ("unbroken", "broken"))
    assert one == other


def test_lines_that_cannot_be_learned_are_skipped_on_demand(command: Command) -> None:
    data, words = tsv(rows=[*PAIRS, (STORY, "the garden")]), ["--set", "train.steps=1", "--out", "run"]
    assert "line 81: the answer 'the garden' has 2 words" in command("train", "babi", "--data", data, *words).complaint
    assert "1 x unreadable pair (first at line 81)" in fine(
        command("train", "babi", "--data", data, "--skip-bad", *words)
    ).err  # fmt: skip


def test_a_target_of_two_words_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEQLOOM_CACHE", str(tmp_path / "cache"))
    with pytest.raises(SeqloomError, match=r"line 81: the answer .* has 2 words; expected one"):
        seqloom.fit([*PAIRS, (STORY, "the garden")], small("babi"), out=tmp_path / "run", display=Display.quiet())
    assert not (tmp_path / "run").exists()
