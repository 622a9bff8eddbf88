"""Runs that are damaged, foreign, from tomorrow, or that bring code of their own."""

from __future__ import annotations

import errno
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import seqloom
from seqloom.errors import SeqloomError
from seqloom.storage import files
from seqloom.storage import run as checkpoint
from seqloom.storage.run import Run
from tests.cli.conftest import Command, toml, tsv, written
from tests.cli.test_mistakes import says

VERBS = ["predict", "evaluate", "score", "explain"]


@pytest.fixture
def copy(translator: Path) -> Path:
    shutil.copytree(translator, "copy")
    return Path("copy")


def complaint_of(command: Command, verb: str, *options: object) -> str:
    given = {"predict": "12\n", "explain": "", "evaluate": "12\t21\n", "score": "12\t21\n"}
    return command(verb, "copy", *(["12"] if verb == "explain" else []), *options, stdin=given[verb]).complaint


@pytest.mark.parametrize("verb", VERBS)
class TestDamage:
    def test_truncated_weights(self, command: Command, copy: Path, verb: str) -> None:
        whole = (copy / "model.safetensors").read_bytes()
        written(copy / "model.safetensors", whole[: len(whole) // 2])
        says(complaint_of(command, verb), "model.safetensors", "not a complete safetensors file")

    def test_weights_of_another_model(self, command: Command, copy: Path, verb: str) -> None:
        save_file({"something.else": torch.zeros(2)}, copy / "model.safetensors")
        says(complaint_of(command, verb), "model.safetensors", "weights of another model")

    def test_weights_of_another_size(self, command: Command, copy: Path, verb: str) -> None:
        weights = load_file(copy / "model.safetensors")
        name = next(name for name, value in weights.items() if value.dim() == 2 and "embedding" not in name)
        save_file(weights | {name: torch.zeros(3, 3)}, copy / "model.safetensors")
        says(complaint_of(command, verb), "model.safetensors", name, "(3, 3)")

    def test_a_vocabulary_that_is_not_the_one_of_the_weights(self, command: Command, copy: Path, verb: str) -> None:
        path = copy / "target.tokenizer.json"
        content = json.loads(path.read_text())
        content["model"]["vocab"]["ü"] = len(content["model"]["vocab"])
        written(path, json.dumps(content))
        says(complaint_of(command, verb), "the vocabulary has 15 tokens, the weights 14", "tokenizer files")

    def test_a_tokenizer_that_is_missing_or_no_tokenizer(self, command: Command, copy: Path, verb: str) -> None:
        written(copy / "source.tokenizer.json", "{}")
        says(complaint_of(command, verb), "source.tokenizer.json", "not a vocabulary")
        (copy / "source.tokenizer.json").unlink()
        says(complaint_of(command, verb), "source.tokenizer.json", "cannot be read")

    def test_missing_weights_and_recipes(self, command: Command, copy: Path, verb: str) -> None:
        (copy / "model.safetensors").unlink()
        says(complaint_of(command, verb), "model.safetensors", "no such weights file")
        (copy / "config.toml").unlink()
        says(complaint_of(command, verb), "config.toml", "cannot be read")

    def test_a_run_of_a_newer_format(self, command: Command, copy: Path, verb: str) -> None:
        written(copy / "format.json", json.dumps({"format": checkpoint.FORMAT + 1}))
        says(complaint_of(command, verb), f"run format {checkpoint.FORMAT + 1}", "upgrade seqloom")


class TestOwnParts:
    """Code of one's own runs only under trust."""

    @pytest.fixture
    def own(self) -> Path:
        """A module in the working folder, which notes that it was imported."""
        return written(
            "own_parts.py",
            "from pathlib import Path\n"
            "from seqloom.nn.cells.gru import GRU\n"
            'Path("imported").touch()\n'
            "class Own(GRU):\n    pass\n",
        )

    @pytest.fixture(autouse=True)
    def forgotten(self) -> Any:
        yield
        sys.modules.pop("own_parts", None)

    @pytest.fixture
    def own_recipe(self, own: Path, recipe: dict[str, Any]) -> Path:
        recipe["encoder"]["cell"] = {"type": "own_parts:Own"}
        return toml(recipe)

    def test_training_and_checking_refuse_it_unless_trusted(self, command: Command, own_recipe: Path) -> None:
        words = ("encoder.cell.type", '"own_parts:Own"', "outside Seqloom", "--trust")
        says(command("train", own_recipe, "--data", tsv(), "--out", "out").complaint, *words)
        says(command("check", own_recipe).complaint, *words)
        setting = ["--set", "decoder.cell.type=own_parts:Own"]
        says(command("train", "dates", "--data", tsv(), "--out", "out", *setting).complaint, "outside Seqloom")
        assert not Path("imported").exists()
        assert not Path("out").exists()
        assert 'type = "own_parts:Own"' in command("check", own_recipe, "--trust").out

    def test_a_trusted_run_works_and_a_distrusted_one_runs_nothing(self, command: Command, own_recipe: Path) -> None:
        assert command("train", own_recipe, "--data", tsv(), "--out", "copy", "--trust").code == 0
        sys.modules.pop("own_parts")
        Path("imported").unlink()
        for verb in VERBS:
            says(complaint_of(command, verb), "config.toml: encoder.cell.type", "outside Seqloom", "--trust")
        says(command("train", "--resume", "--out", "copy").complaint, "outside Seqloom")
        says(command("train", "--init", "copy", "--data", tsv(), "--out", "new").complaint, "outside Seqloom")
        with pytest.raises(SeqloomError, match="outside Seqloom"):
            seqloom.load("copy")
        assert not Path("imported").exists()

        outcome = command("predict", "copy", "--trust", stdin="12\n")
        assert outcome.code == 0
        assert Path("imported").exists()
        assert seqloom.load("copy", trust=True).predict(["12"]) == outcome.out.splitlines()
        assert command("explain", "copy", "12", "--trust").code == 0
        assert command("score", "copy", "--trust", stdin="12\t21\n").code == 0
        assert command("evaluate", "copy", "--trust", stdin="12\t21\n").code == 0
        assert command("train", "--resume", "--out", "copy", "--trust", "--set", "train.steps=21").code == 0

    def test_a_trusted_module_that_is_not_there_or_no_cell_is_one_line(
        self, command: Command, own: Path, recipe: dict[str, Any]
    ) -> None:
        for name, words in (("nowhere:Own", ["cannot be imported"]), ("own_parts:Path", ["subclass", "Cell"])):
            recipe["encoder"]["cell"] = {"type": name}
            message = command("train", toml(recipe), "--data", tsv(), "--out", "out", "--trust").complaint
            says(message, "encoder.cell.type", name, *words)


class TestResume:
    def test_a_changed_recipe_is_refused_and_the_run_stays(
        self, command: Command, copy: Path, recipe: dict[str, Any]
    ) -> None:
        before = (copy / "config.toml").read_bytes()
        words = ("copy was trained with another recipe", "encoder.size", "another --out")
        resume = ["--resume", "--out", copy, "--data", tsv()]
        says(command("train", *resume, "--set", "encoder.size=8").complaint, *words)
        recipe["encoder"]["size"] = 8
        says(command("train", toml(recipe), *resume).complaint, *words)
        assert (copy / "config.toml").read_bytes() == before
        assert Run.open(copy).newest().step == 20  # type: ignore[union-attr]

    def test_more_steps_are_no_other_recipe_however_they_are_said(
        self, command: Command, copy: Path, recipe: dict[str, Any]
    ) -> None:
        resume = ["--resume", "--out", copy, "--data", tsv()]
        assert "resumed at step 20" in command("train", *resume, "--set", "train.steps=22").err
        recipe["train"]["steps"] = 25
        assert "resumed at step 22" in command("train", toml(recipe), *resume).err
        assert Run.open(copy).newest().step == 25  # type: ignore[union-attr]

    def test_what_came_through_a_pipe_must_be_given_again(self, command: Command, recipe: dict[str, Any]) -> None:
        data = tsv().read_bytes()
        assert command("train", toml(recipe), "--data", "-", "--out", "piped", stdin=data).code == 0
        assert "spool" not in Path("piped/config.toml").read_text()
        resume = ["--resume", "--out", "piped", "--set", "train.steps=21"]
        says(command("train", *resume).complaint, "no training data", "--data")
        assert "resumed at step 20" in command("train", *resume, "--data", "-", stdin=data).err


class TestFullDisk:
    def test_the_checkpoint_before_survives_and_training_goes_on_from_it(
        self, command: Command, recipe: dict[str, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        genuine = files.write

        def full(path: Path, content: bytes) -> None:
            if "step-00000020" in str(path):
                path.write_bytes(content[:10])
                raise OSError(errno.ENOSPC, "No space left on device")
            genuine(path, content)

        monkeypatch.setattr(files, "write", full)
        outcome = command("train", toml(recipe), "--data", tsv(), "--out", "out")
        monkeypatch.setattr(files, "write", genuine)
        last = outcome.err.splitlines()[-1]
        says(last, "seqloom: could not write", "No space left on device", "step 10 is untouched", "--resume")
        assert outcome.code == 2
        assert "Traceback" not in outcome.err
        assert [each.step for each in Run.open("out").checkpoints()] == [10]
        assert command("predict", "out", stdin="12\n").code == 0
        assert "resumed at step 10" in command("train", "--resume", "--out", "out").err
        assert Run.open("out").newest().step == 20  # type: ignore[union-attr]

    def test_a_disk_that_is_full_from_the_beginning_leaves_no_run(
        self, command: Command, recipe: dict[str, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(path: Path, content: bytes) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(files, "write", full)
        outcome = command("train", toml(recipe), "--data", tsv(), "--out", "out")
        says(outcome.err.splitlines()[-1], "can be written neither", "No space left on device")
        assert outcome.code == 2
        assert not Path("out").exists()
