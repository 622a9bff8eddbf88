"""Resuming in use: whatever is there, one writer at a time, damaged checkpoints, signals."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import seqloom
from seqloom.errors import SeqloomError
from seqloom.storage.lock import WriteLock
from seqloom.storage.run import Run
from seqloom.storage.weights import average, read
from seqloom.train.display import Display
from tests.cli.conftest import Command, pairs, toml, tsv
from tests.cli.test_mistakes import says


@pytest.fixture
def copy(translator: Path) -> Path:
    shutil.copytree(translator, "copy")
    return Path("copy")


class TestAuto:
    def test_it_starts_what_is_not_there_and_resumes_what_is(self, command: Command, recipe: dict[str, Any]) -> None:
        Path("out").mkdir()  # a kill may have left an empty folder
        words = ["train", toml(recipe), "--data", tsv(), "--out", "out", "--resume=auto"]
        first = command(*words, "--set", "train.steps=10")
        assert first.code == 0, first.err
        assert "resumed" not in first.err
        second = command(*words, "--set", "train.steps=12")
        assert second.code == 0, second.err
        assert "resumed at step 10" in second.err
        assert Run.open("out").newest().step == 12  # type: ignore[union-attr]

    def test_a_run_without_a_checkpoint_begins_again_with_the_weights_it_was_to_start_from(
        self, command: Command, translator: Path
    ) -> None:
        words = ["train", "--data", tsv(), "--init", translator, "--resume=auto", "--set", "train.steps=2"]
        assert command(*words, "--out", "whole").code == 0
        assert command(*words, "--out", "out").code == 0
        for path in (Path("out/checkpoints"), Path("out/model.safetensors"), Path("out/metrics.jsonl")):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        again = command(*words, "--out", "out")
        assert again.code == 0, again.err
        assert Path("out/model.safetensors").read_bytes() == Path("whole/model.safetensors").read_bytes()

    def test_the_same_command_of_a_packaged_recipe_goes_on(self, command: Command) -> None:
        """The recipe in the run was fitted to the data: that is no change."""
        words = ["train", "dates", "--data", tsv(), "--out", "out", "--resume=auto", "--device", "cpu"]
        words += ["--set", "encoder.size=16", "--set", "decoder.size=16"]
        first = command(*words, "--set", "train.steps=1")
        assert "Fitted to" in first.err, first.err
        assert first.code == 0, first.err
        second = command(*words, "--set", "train.steps=2")
        assert "resumed at step 1" in second.err, second.err
        says(command(*words, "--set", "train.learning_rate=5").complaint, "another recipe", "train.learning_rate")
        says(command(*words, "--set", "decoder.embedding_size=5").complaint, "another recipe", "embedding_size")

    def test_a_folder_of_other_things_is_not_touched(self, command: Command, recipe: dict[str, Any]) -> None:
        Path("out").mkdir()
        Path("out/precious.txt").write_text("precious")
        says(
            command("train", toml(recipe), "--data", tsv(), "--out", "out", "--resume=auto").complaint, "already exists"
        )
        assert [path.name for path in Path("out").iterdir()] == ["precious.txt"]

    def test_in_python(self, recipe: dict[str, Any]) -> None:
        recipe["train"]["steps"] = 2
        for steps in (2, 3):
            model = seqloom.fit(
                pairs(), recipe, out="out", resume="auto", settings={"train.steps": steps}, display=Display.quiet()
            )
            assert model.summary is not None
            assert model.summary.steps == steps
        with pytest.raises(SeqloomError, match=r'resume = "never": expected True, False or "auto"'):
            seqloom.fit(pairs(), recipe, out="out", resume="never", display=Display.quiet())  # type: ignore[arg-type]

    def test_the_plain_option_takes_no_value(self, command: Command, recipe: dict[str, Any], copy: Path) -> None:
        resumed = command("train", "--resume", toml(recipe), "--data", tsv(), "--out", copy)
        assert "resumed at step 20" in resumed.err
        assert command("train", "--resume=perhaps", "--out", copy).code == 2


def test_a_run_that_somebody_writes_is_refused_and_reading_goes_on(command: Command, copy: Path) -> None:
    before = (copy / "metrics.jsonl").read_bytes()
    with WriteLock() as lock:
        Run.open(copy, lock)
        complaint = command("train", "--resume", "--out", copy, "--data", tsv()).complaint
        says(complaint, f"copy is being written by process {os.getpid()} on")
        assert command("predict", copy, stdin="12\n").code == 0
        assert command("train", "--resume", "--dry-run", "--out", copy, "--data", tsv()).code == 0
    assert (copy / "metrics.jsonl").read_bytes() == before


def test_a_resume_leaves_the_recipe_as_it_was_to_the_last_byte(command: Command, recipe: dict[str, Any]) -> None:
    words = ["train", "--data", tsv(), "--out", "out", "--resume=auto"]
    assert command(*words, toml(recipe), "--minutes", "0.05", "--set", "train.steps=none").code == 0
    before = Path("out/config.toml").read_bytes()
    assert command(*words).code == 0
    assert Path("out/config.toml").read_bytes() == before
    assert command(*words, "--set", "train.patience=7").code == 0
    longer = Path("out/config.toml").read_text()
    assert longer == before.decode().replace("patience = 0", "patience = 7")


@pytest.mark.parametrize("damage", ["truncated", "flipped"])
def test_a_damaged_newest_checkpoint_falls_back_to_the_one_before(
    command: Command, recipe: dict[str, Any], damage: str
) -> None:
    recipe["train"] |= {"keep": 3, "steps": 30}
    assert command("train", toml(recipe), "--data", tsv(), "--out", "whole").code == 0
    shutil.copytree("whole", "out")
    file = Path("out/checkpoints/step-00000030/model.safetensors")
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content[:-10] if damage == "truncated" else content)
    resumed = command("train", "--resume", "--out", "out")
    assert resumed.code == 0, resumed.err
    (line,) = [line for line in resumed.err.splitlines() if "set aside" in line]
    says(line, "the checkpoint of step 30 cannot be used", "model.safetensors")
    assert "resumed at step 20" in resumed.err
    assert Path("out/model.safetensors").read_bytes() == Path("whole/model.safetensors").read_bytes()
    kept = [each.name for each in sorted(Path("whole/checkpoints").iterdir())]
    assert [each.name for each in sorted(Path("out/checkpoints").glob("step-*"))] == kept


def test_a_checkpoint_that_a_kill_left_too_many_is_not_averaged_and_goes_with_a_resume(
    command: Command, copy: Path
) -> None:
    """As after a kill between the writing of a checkpoint and the removal of one that it replaces."""
    checkpoints = copy / "checkpoints"
    shutil.copytree(checkpoints / "step-00000010", checkpoints / "step-00000015")
    kept = [checkpoints / f"step-000000{step}" for step in (10, 20)]
    assert "steps 10, 20 is in" in command("average", copy, "--out", "mean").err
    mean, expected = read(Path("mean/model.safetensors")), average(kept)
    assert all(mean[name].equal(expected[name]) for name in expected)
    assert command("train", "--resume", "--out", copy, "--data", tsv(), "--set", "train.steps=21").code == 0
    assert not (checkpoints / "step-00000015").exists()


def test_a_damaged_checkpoint_is_not_averaged(command: Command, copy: Path) -> None:
    file = copy / "checkpoints/step-00000010/model.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    says(command("average", copy, "--out", "mean").complaint, str(file), "damaged")
    assert not Path("mean").exists()


def test_sigterm_saves_and_exits_with_143(recipe: dict[str, Any]) -> None:
    recipe["train"] |= {"steps": 1_000_000, "validate_every": 1_000_000}
    run = [sys.executable, "-m", "seqloom", "train", str(toml(recipe)), "--data", str(tsv()), "--out", "out"]
    process = subprocess.Popen(run, stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    deadline = time.monotonic() + 60
    while not Path("out/metrics.jsonl").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.terminate()
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 128 + signal.SIGTERM, said
    assert said.splitlines()[-1].startswith("Interrupted and saved.")
    newest = Run.open("out").newest()
    assert newest is not None
    assert json.loads((newest.path / "trainer.json").read_text())["standing"]["step"] == newest.step
    assert not Path("out/.lock").exists()
