"""`seqloom diagnose` on tiny runs: one that is under-trained, one that is fine, and those of other kinds."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import Any

import pytest

import seqloom
from tests.cli.conftest import TRANSLATOR, Command, pairs, toml, trained, tsv

FINE = ["train.steps=200", "train.optimiser=sgd", "train.learning_rate=1.0", "train.warmup=10"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs on one file of numbers and the same backwards."""
    folder = tmp_path_factory.mktemp("diagnosed")
    data, before = tsv(folder / "pairs.tsv", pairs(600)), os.environ.get("SEQLOOM_CACHE")
    os.environ["SEQLOOM_CACHE"] = str(folder / "cache")
    for name, settings in (("short", ["train.steps=30"]), ("fine", FINE)):
        seqloom.fit(str(data), TRANSLATOR, out=folder / name, settings=settings)
    os.environ.pop("SEQLOOM_CACHE") if before is None else os.environ.update(SEQLOOM_CACHE=before)
    return folder


def found(command: Command, *arguments: object) -> dict[str, Any]:
    outcome = command("diagnose", *arguments, "--json")
    assert outcome.code == 0, outcome.err
    record: dict[str, Any] = json.loads(outcome.out)
    return record


def test_a_short_training_is_under_trained_and_its_warm_up_too_long(command: Command, folder: Path) -> None:
    record = found(command, folder / "short")
    names = [finding["name"] for finding in record["findings"]]
    assert {"learning-rate-never-reached", "under-trained"} <= {*names}
    assert record["figures"]["outputs"]["count"] == 60  # held out again, as training did
    assert record["figures"]["outputs"]["right"] < 0.5
    assert record["figures"]["curves"]["updates"] == 30
    assert sum(each["count"] for each in record["figures"]["errors_by_length"]["bins"]) == 60
    assert record["notes"] == []


def test_a_good_training_has_nothing_to_complain_of(command: Command, folder: Path) -> None:
    record = found(command, folder / "fine")
    assert record["findings"] == []
    assert record["figures"]["outputs"]["right"] > 0.95
    assert len(record["next"]) == 3
    text = command("diagnose", folder / "fine")
    assert "Nothing stands out." in text.out
    assert text.out.count("\n  seqloom ") == 3


def test_the_first_command_can_be_pasted_and_helps(command: Command, folder: Path) -> None:
    record = found(command, folder / "short")
    longer = next(each["command"] for each in record["findings"] if each["name"] == "under-trained")
    words = shlex.split(longer)
    assert words[:2] == ["seqloom", "train"]
    outcome = command(*words[1:])
    assert outcome.code == 0, outcome.err
    after = found(command, folder / "short")["figures"]["curves"]
    assert after["updates"] == 60
    assert after["validation_loss_at_best"] < record["figures"]["curves"]["validation_loss_at_best"]


def test_a_command_that_trains_again_can_be_pasted_too(command: Command, folder: Path) -> None:
    again = next(each for each in found(command, folder / "fine")["next"] if "config.toml" in each)
    outcome = command(*shlex.split(again)[1:], "--set", "train.steps=2")
    assert outcome.code == 0, outcome.err
    assert "600 examples" in outcome.err


def test_other_data_and_fewer_examples_are_taken(command: Command, folder: Path) -> None:
    outputs = found(command, folder / "fine", "--data", tsv("test.tsv", pairs(30)), "--examples", 10)["figures"][
        "outputs"
    ]
    assert outputs["count"] == 10
    assert outputs["right"] > 0.9
    assert "there is no such file" in command("diagnose", folder / "fine", "--data", "nowhere.tsv").complaint


def test_python_diagnoses_folders_and_models_alike(folder: Path) -> None:
    by_path = seqloom.diagnose(folder / "fine", pairs(20))
    by_model = seqloom.diagnose(seqloom.load(folder / "fine"), pairs(20))
    assert by_path.to_json() == by_model.to_json()


def test_a_picture_is_written_or_refused_before_anything_is_computed(command: Command, folder: Path) -> None:
    assert command("diagnose", folder / "fine", "--out", "picture.png").code == 0
    assert Path("picture.png").read_bytes().startswith(b"\x89PNG")
    assert "x.png" in command("diagnose", folder / "fine", "--out", "x").complaint
    assert "not a run folder" in command("diagnose", "nowhere").complaint


def test_a_run_trained_on_a_list_is_diagnosed_by_its_curves(command: Command, translator: Path) -> None:
    outcome = command("diagnose", translator)
    assert outcome.code == 0
    assert "Only the curves are diagnosed: the run does not record which files it was trained on" in outcome.out
    assert "--data FILE" in outcome.out


def test_data_that_are_gone_are_named(command: Command, folder: Path) -> None:
    Path("copy.tsv").write_bytes((folder / "pairs.tsv").read_bytes())
    assert command("train", toml({**TRANSLATOR}), "--data", "copy.tsv", "--out", "run").code == 0
    Path("copy.tsv").unlink()
    outcome = command("diagnose", "run")
    assert outcome.code == 0
    assert "Only the curves are diagnosed: " in outcome.out
    assert "copy.tsv" in outcome.out
    outcome = command("diagnose", "run", "--data", tsv("test.tsv", pairs(30)))
    assert "Errors by frequency are left out: " in outcome.out


def test_a_language_model_is_diagnosed_without_outputs(command: Command, language_model: Path) -> None:
    Path("text.txt").write_text("001\n101\n2x2\n")
    record = found(command, language_model, "--data", "text.txt")
    assert record["figures"]["unknown_words"]["target"] == pytest.approx(1 / 9)
    assert record["notes"] == ["The run is a language model: it has no outputs to compare token by token."]


def test_labels_are_confused(command: Command, recipe: dict[str, Any]) -> None:
    """Odd or even cannot be told from numbers whose last digit is missing."""
    rows = [(f"{number // 10}x", ("even", "odd")[number % 2]) for number in range(100, 500)]
    recipe["train"] |= {"steps": 100, "optimiser": "sgd", "learning_rate": 1.0, "warmup": 5}
    run = trained(Path.cwd(), recipe, rows)
    record = found(command, run, "--data", tsv("labels.tsv", rows))
    assert "confused-labels" in [finding["name"] for finding in record["findings"]]
    (reference, output, count), *_ = record["figures"]["confusions"]["pairs"]
    assert {reference, output} == {"even", "odd"}
    assert count > 50


def test_the_end_of_a_training_says_what_the_curves_say(command: Command, folder: Path) -> None:
    outcome = command("train", toml(TRANSLATOR), "--data", tsv(), "--out", "run")
    *_, more, last = outcome.err.splitlines()
    assert "The learning rate never reached its peak: 100 updates of warm-up in a training of 20" in outcome.err
    assert more == "More, and what to try next: seqloom diagnose run"
    assert last.startswith("The run is in run.")


def test_a_diagnosis_that_fails_does_not_fail_the_training(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seqloom.analysis.diagnosis.diagnose.short_diagnosis", lambda path: 1 / 0)
    outcome = command("train", toml(TRANSLATOR), "--data", tsv(), "--out", "run")
    assert outcome.code == 0
    assert "ZeroDivisionError" not in outcome.err


def test_unknown_words_that_could_be_copied_are_counted(command: Command) -> None:
    """A model of words that knows two verbs, and names that occur once each."""
    recipe = {
        **TRANSLATOR,
        "task": {side: {"type": "text", "units": "word", "size": 6} for side in ("source", "target")},
    }
    recipe["task"]["metrics"] = ["exact"]
    rows = [(f"{verb} n{number}", f"n{number} {verb}s") for number in range(60) for verb in ("sees", "hears")]
    run = trained(Path.cwd(), recipe, rows)
    record = found(command, run, "--data", tsv("names.tsv", rows))
    assert record["figures"]["unknown_words"]["target"] > 0.4
    assert record["figures"]["unknown_words"]["copyable"] == 1.0
    finding = next(each for each in record["findings"] if each["name"] == "unknown-target-words")
    words = shlex.split(finding["command"])
    assert words[-1] == "--replace-unknown"
    assert command(*words[1:]).code == 0
