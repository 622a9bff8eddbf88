"""Recordings in, text out: from a table of paths to a trained run, on the command line and in Python."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

import seqloom
from seqloom.data.codecs import sound
from seqloom.errors import SeqloomError
from seqloom.train.display import Display
from tests.cli.conftest import Command, toml, tsv, written
from tests.cli.test_mistakes import says, training_complaint
from tests.cli.test_use import fine, sets

TONES = {"low": 300, "middle": 900, "high": 2500}
PART = {"type": "recurrent", "size": 12, "embedding_size": 12}
RECIPE: dict[str, Any] = {
    "search": {"type": "beam", "beam_size": 2},
    "task": {"source": {"type": "audio", "mels": 16}, "target": {"type": "text", "units": "word"}, "metrics": ["wer"]},
    "encoder": PART,
    "decoder": {**PART, "attention": {"type": "additive", "size": 8}},
    "train": {"tokens": 400, "steps": 6, "learning_rate": 0.01, "device": "cpu", "log_every": 1},
}
MASKS = ["task.source.time_masks=2", "task.source.frequency_masks=1"]


def tune(words: list[str], rate: int = 8000) -> np.ndarray:
    """A tone a word, a tenth of a second each."""
    time = np.arange(rate // 10) / rate
    return np.concatenate([0.3 * np.sin(2 * np.pi * TONES[word] * time) for word in words])


def tunes(folder: Path, count: int = 20) -> Path:
    """Recordings and the table that names them."""
    chance, rows = np.random.default_rng(1), []
    (folder / "clips").mkdir(parents=True)
    for number in range(count):
        words = chance.choice(list(TONES), chance.integers(2, 5)).tolist()
        sound = tune(words)
        soundfile.write(folder / "clips" / f"{number}.wav", sound + chance.normal(0, 0.01, len(sound)), 8000)
        rows.append((f"clips/{number}.wav", " ".join(words)))
    return tsv(folder / "tunes.tsv", rows)


@pytest.fixture(scope="module")
def listener(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run and, beside it, what it was trained on."""
    folder = tmp_path_factory.mktemp("listener")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEQLOOM_CACHE", str(folder / "cache"))
        seqloom.fit(tunes(folder / "data"), copy.deepcopy(RECIPE), out=folder / "run", display=Display.quiet())
    return folder / "run"


class TestAListener:
    def test_every_form_of_a_recording_is_heard_alike(self, listener: Path) -> None:
        model = seqloom.load(listener)
        sound = tune(["low", "high", "low"]).astype(np.float32)
        soundfile.write("a.flac", sound, 8000, subtype="PCM_24")
        soundfile.write("a.wav", sound, 8000, subtype="FLOAT")
        answers = model.predict(["a.flac", "a.wav", Path("a.wav"), (sound, 8000), sound])
        assert set(answers) == {answers[0]}
        assert set(answers[0].split()) <= set(TONES)
        assert model.score([("a.wav", "low high low")])[0] == pytest.approx(
            model.score([(sound, "low high low")])[0], abs=1e-4
        )

    def test_the_run_has_the_statistics_of_its_training_data_and_predicts_without_it(self, listener: Path) -> None:
        learned = json.loads((listener / "source.audio.json").read_text())
        assert [len(learned[name]) for name in ("mean", "deviation")] == [16, 16]
        assert seqloom.load(listener).task.source.seconds == 0.03  # type: ignore[union-attr]

    def test_a_path_a_line_in_is_a_text_a_line_out(self, command: Command, listener: Path) -> None:
        data = listener.parent / "data"
        stdin = f"{data / 'clips/0.wav'}\n\n{data / 'clips/1.wav'}\n"
        lines = fine(command("predict", listener, stdin=stdin)).out.split("\n")
        assert len(lines) == 4
        assert lines[1] == ""
        model = seqloom.load(listener)
        assert [lines[0], lines[2]] == model.predict([data / "clips/0.wav", data / "clips/1.wav"])
        soundfile.write("here.wav", tune(["low", "low"]), 8000)
        found = json.loads(fine(command("predict", listener, "--attention", stdin="here.wav")).out)
        assert found["source"] == "here.wav"
        assert len(found["outputs"][0]["attention"][0]) == 6  # 1,600 samples, 18 frames

    def test_tables_are_measured_from_anywhere_and_bad_recordings_counted(
        self, command: Command, listener: Path
    ) -> None:
        data = listener.parent / "data"
        measured = json.loads(fine(command("evaluate", listener, "--data", data / "tunes.tsv")).out)
        assert measured["examples"] == 20
        good = (data / "tunes.tsv").read_text()
        written(data / "broken.wav", "no sound")
        bad = written(data / "bad.tsv", good + "broken.wav\tlow\ngone.wav\tlow\n")
        says(
            command("evaluate", listener, "--data", bad).complaint,
            f"{bad}, line 21",
            "broken.wav is not a readable sound file",
        )
        outcome = fine(command("evaluate", listener, "--data", bad, "--skip-bad"))
        assert json.loads(outcome.out) == measured
        assert outcome.err == "Skipped 2 bad lines: 2 x unreadable source (first at line 21).\n"
        assert fine(command("score", listener, "--data", bad, "--skip-bad")).out.count("\n") == 20

    @pytest.mark.parametrize(
        ("line", "words"),
        [
            ("nowhere.wav", ["nowhere.wav", "no such file"]),
            ("text.wav", ["text.wav is not a readable sound file", "WAV or FLAC"]),
            ("short.wav", ["short.wav lasts 10 ms"]),
        ],
    )
    def test_a_bad_line_is_named(self, command: Command, listener: Path, line: str, words: list[str]) -> None:
        written("text.wav", "no sound")
        soundfile.write("short.wav", np.zeros(80), 8000)
        says(command("predict", listener, stdin=line).complaint, *words)
        with pytest.raises(SeqloomError, match=words[0]):
            seqloom.load(listener).predict([line])

    def test_another_rate_is_said_once(self, command: Command, listener: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sound, "RESAMPLED", set())
        for name in "ab":
            soundfile.write(f"{name}.wav", tune(["low", "high"], 16000), 16000)
        outcome = fine(command("predict", listener, stdin="a.wav\nb.wav\n"))
        assert outcome.err.count("resampled") == outcome.err.count("\n") == 1


class TestTraining:
    def test_masks_hide_in_training_alone_and_a_resumed_run_equals_an_unbroken_one(self, command: Command) -> None:
        data = tunes(Path("data"))
        runs = {"plain": (4, []), "whole": (4, MASKS), "half": (2, MASKS)}
        for name, (steps, masks) in runs.items():
            changes = sets(f"train.steps={steps}", "train.validate_every=1", *masks)
            fine(command("train", toml(RECIPE), "--data", data, "--valid", data, "--out", name, *changes))
        fine(command("train", "--resume", "--out", "half", *sets("train.steps=4")))
        weights = {name: (Path(name) / "model.safetensors").read_bytes() for name in runs}
        assert weights["half"] == weights["whole"] != weights["plain"]
        lines = [json.loads(line) for line in Path("whole/metrics.jsonl").read_text().splitlines()]
        valid = min(line["loss"] for line in lines if line["kind"] == "valid")
        pairs = [line.split("\t") for line in data.read_text().splitlines()]
        scores = seqloom.load("whole").score([(f"data/{path}", words) for path, words in pairs])
        assert valid == pytest.approx(-sum(scores) / sum(len(words.split()) + 1 for _, words in pairs), rel=1e-4)

    def test_bad_recordings_stop_it_or_are_counted(self, command: Command) -> None:
        data = tunes(Path("data"))
        written(data, data.read_text() + "clips/gone.wav\tlow\n")
        says(training_complaint(command, RECIPE, "--data", data), "tunes.tsv, line 21", "gone.wav", "--skip-bad")
        said = fine(command("train", toml(RECIPE), "--data", data, "--out", "out", "--skip-bad")).err
        assert "Skipped 1 training line: 1 x unreadable source (first at line 21)." in said

    def test_json_lines_name_recordings_too(self, command: Command) -> None:
        rows = [line.split("\t") for line in tunes(Path("data")).read_text().splitlines()]
        lines = "".join(f"{json.dumps({'source': source, 'target': target})}\n" for source, target in rows)
        data = written("data/tunes.jsonl", lines)
        fine(command("train", toml(RECIPE), "--data", data, "--out", "out", *sets("train.steps=1")))

    def test_recordings_in_memory_train_as_files_do(self) -> None:
        table = tunes(Path("data"))
        rows = [line.split("\t") for line in table.read_text().splitlines()]
        sounds = [(soundfile.read(Path("data") / path, dtype="int16"), words) for path, words in rows]
        answers = []
        for name, data in (("files", table), ("arrays", sounds)):
            model = seqloom.fit(data, copy.deepcopy(RECIPE), out=name, valid=sounds[:2], display=Display.quiet())
            answers.append(model.score([sounds[0]]))
        assert answers[0] == answers[1]

    def test_a_target_of_sound_is_refused_before_the_data_is_read(self, command: Command) -> None:
        outcome = training_complaint(command, RECIPE, "--data", "nowhere.tsv", "--set", "task.target=audio")
        says(outcome, "task", "a source, not a target")

    def test_numbers_that_are_none_are_skipped_too(self, command: Command) -> None:
        recipe = copy.deepcopy(RECIPE)
        recipe["task"]["source"] = "numbers"
        rows = [(f"0.{number} 1 2", "low high") for number in range(20)]
        data = tsv(rows=[*rows[:2], ("0.1 x", "low"), *rows[2:]])
        says(training_complaint(command, recipe, "--data", data), "pairs.tsv, line 3", "'x' is not a number")
        said = fine(command("train", toml(recipe), "--data", data, "--out", "out", "--skip-bad")).err
        assert "Skipped 1 training line: 1 x unreadable source (first at line 3)." in said


def test_sounds_are_drawn_sample_by_sample_for_a_digit(command):
    import soundfile

    random = np.random.default_rng(1)
    for number in range(10):
        soundfile.write(f"{number}.wav", random.normal(0, 0.1, 900), 8000)
    Path("digits.tsv").write_text("".join(f"{number % 2}\t{number}.wav\n" for number in range(10)))
    small = ["decoder.size=4", "decoder.skip=4", "decoder.hidden=4", "decoder.layers=3", "train.steps=2"]
    classes = ['task.source={type="text", units="char"}', 'encoder={type="recurrent", embedding_size=4, size=4}']
    settings = [word for each in [*small, *classes] for word in ("--set", each)]
    outcome = command("train", "wave", "--data", "digits.tsv", "--out", "run", *settings)
    assert outcome.code == 0, outcome.err
    options = ("--source", "1", "--maximum-length", 500, "--count", 2, "--seed", 1)
    outcome = command("generate", "run", *options, "--out", "new.wav")
    assert outcome.code == 0, outcome.err
    samples, rate = soundfile.read("new-2.wav")
    assert (len(samples), rate) == (500, 8000)
    assert "new-1.wav has 500 steps." in outcome.err
    again = seqloom.load("run").generate(2, source="1", maximum_length=500, seed=1)
    assert np.abs(again[1] - samples).max() < 1e-4
    assert command("generate", "run", *options).out.splitlines() == ["(a sound of 0.06 s)"] * 2
    assert {"nats", "bits_per_dimension"} <= seqloom.load("run").evaluate("digits.tsv").keys()
    assert "ends so" in command("generate", "run", "--source", "1", "--out", "new.png").complaint
