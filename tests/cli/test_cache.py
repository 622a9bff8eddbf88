"""`seqloom cache`, and what trainings say of their cache."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

from seqloom.data.cache import Cache
from tests.cli.conftest import Command, pairs, toml, tsv

STEPS = ("--set", "train.steps=1")


def train(command: Command, recipe: dict, out: str, data: str = "pairs.tsv", stdin: str = ""):  # type: ignore[no-untyped-def]
    outcome = command("train", toml(recipe), "--data", data, "--out", out, *STEPS, stdin=stdin)
    assert outcome.code == 0, outcome.err
    return outcome


@pytest.fixture
def filled(command: Command, recipe: dict) -> Path:
    """The one entry of a cache."""
    os.utime(tsv(), (1, 1))
    train(command, recipe, "first")
    return Cache().entries()[0].folder


def test_an_empty_cache_is_no_mistake(command: Command) -> None:
    for words in ((), ("--clear",)):
        outcome = command("cache", *words)
        assert (outcome.code, outcome.out) == (0, "")
        assert " 0 data sets" in f" {outcome.err}"


def test_data_sets_are_listed_with_size_and_files(command: Command, filled: Path) -> None:
    outcome = command("cache")
    (line,) = outcome.out.splitlines()
    assert line.split()[1] == "KB"
    assert line.endswith(str(Path("pairs.tsv").absolute()))
    assert outcome.err.startswith("In ")
    assert ": 1 data set, " in outcome.err
    assert outcome.err.endswith(" of at most 20 GB.\n")


def test_names_of_files_do_not_command_the_terminal(command: Command, recipe: dict) -> None:
    os.utime(tsv("pairs\x1b[31m.tsv"), (1, 1))
    train(command, recipe, "first", "pairs\x1b[31m.tsv")
    assert "\x1b" not in command("cache").out


def test_data_sets_are_removed_all_or_by_their_last_use(command: Command, recipe: dict, filled: Path) -> None:
    tsv("other.tsv", pairs(70))
    train(command, recipe, "second", "other.tsv")
    day_old = (filled / "manifest.json").stat().st_mtime - 86_400
    os.utime(filled / "manifest.json", (day_old, day_old))
    gc.collect()  # both trainings ran in this process
    assert "Removed 0 data sets" in command("cache", "--clear", "--unused", "2").err
    assert "Removed 1 data set," in command("cache", "--clear", "--unused", "0.5").err
    assert not filled.exists()
    assert len(Cache().entries()) == 1
    assert "Removed 1 data set," in command("cache", "--clear").err
    assert Cache().entries() == []


def test_data_sets_in_use_stay(command: Command, filled: Path) -> None:
    held = Cache().open(filled.name)
    assert held
    assert command("cache", "--clear").err == "Removed 0 data sets, 0 KB; 1 in use.\n"
    assert filled.exists()


def test_days_without_clear_are_a_mistake(command: Command) -> None:
    assert "--clear" in command("cache", "--unused", "3").complaint


def test_a_limit_that_is_no_size_is_a_mistake(command: Command, recipe: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQLOOM_CACHE_LIMIT", "a lot")
    assert "expected a size" in command("cache").complaint
    assert "expected a size" in command("train", toml(recipe), "--data", tsv(), "--out", "run").complaint


def test_a_training_says_that_its_cache_was_damaged(command: Command, recipe: dict, filled: Path) -> None:
    path = filled / "train" / "target.bin"
    path.write_bytes(bytes(path.stat().st_size))
    said = train(command, recipe, "second").err
    assert "The cache of pairs.tsv was damaged (train/target.bin): made again.\n" in said
    assert "damaged" not in train(command, recipe, "third").err
    names = ("first", "second", "third")
    assert len({(Path(name) / "model.safetensors").read_bytes() for name in names}) == 1


def test_a_training_without_a_cache_says_so(command: Command, recipe: dict) -> None:
    """Also one that reads a pipe, which is copied first."""
    path = tsv()
    Path(os.environ["SEQLOOM_CACHE"]).write_bytes(b"")
    for out, data, stdin in (("first", "pairs.tsv", ""), ("second", "-", path.read_text())):
        said = train(command, recipe, out, data, stdin).err
        assert said.count("cannot be written") == 1
    assert Path("first/model.safetensors").read_bytes() == Path("second/model.safetensors").read_bytes()
