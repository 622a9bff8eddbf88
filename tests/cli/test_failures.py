"""How a command ends when something goes wrong that is nobody's mistake: one line, an exit code, no traceback."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.cli.conftest import Command, Outcome
from tests.cli.test_mistakes import says


def failing(command: Command, monkeypatch: pytest.MonkeyPatch, error: BaseException, *options: str) -> Outcome:
    """`seqloom recipes`, in which an error is raised."""

    def fail() -> Any:
        raise error

    monkeypatch.setattr("seqloom.config.recipes.packaged", fail)
    return command(*options, "recipes")


class Panic(BaseException):
    """As libraries in Rust raise it: no Exception."""


class TestInternalErrors:
    @pytest.mark.parametrize(
        "error",
        [
            *(ValueError("two\nlines \x1b[2J"), KeyError("x"), AssertionError(), Panic("called unwrap on None")),
            *(RecursionError("maximum recursion depth exceeded"), RuntimeError("shapes do not match")),
        ],
        ids=lambda error: type(error).__name__,
    )
    def test_one_line_names_a_file_with_the_traceback(
        self, command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: BaseException
    ) -> None:
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        outcome = failing(command, monkeypatch, error)
        assert outcome.code == 70
        assert outcome.out == ""
        found = re.fullmatch(
            r"seqloom: internal error ([0-9a-f]{8}) \((\w+): .*\); the details are in (\S+), please report it\n",
            outcome.err,
        )
        assert found
        assert found[2] == type(error).__name__
        details = Path(found[3])
        assert details.name.startswith(f"seqloom-error-{found[1]}-")
        assert "Traceback" in details.read_text()
        assert "'recipes'" in details.read_text()
        assert details.stat().st_mode & 0o077 == 0  # of nobody else's business

    def test_an_error_has_the_same_id_each_time(self, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
        first, second = (failing(command, monkeypatch, ValueError("x")).err.split()[3] for _ in range(2))
        assert first == second

    def test_where_no_file_can_be_written_that_is_said(self, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
        def full(**_: Any) -> Any:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr("tempfile.mkstemp", full)
        outcome = failing(command, monkeypatch, ValueError("x"))
        assert outcome.code == 70
        says(outcome.err, "internal error", "could not be written (No space left on device)", "SEQLOOM_TRACEBACK=1")
        assert outcome.err.count("\n") == 1

    def test_developers_see_the_traceback(self, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SEQLOOM_TRACEBACK", "")  # restored afterwards, whatever the option sets
        outcome = failing(command, monkeypatch, ValueError("x"), "--traceback")
        assert outcome.code == 70
        assert "Traceback (most recent call last)" in outcome.err
        assert outcome.err.splitlines()[-1].startswith("seqloom: internal error")
        monkeypatch.setenv("SEQLOOM_TRACEBACK", "1")
        assert "Traceback" in command("check", "nowhere.toml").err  # of a mistake, too
        monkeypatch.setenv("SEQLOOM_TRACEBACK", "")
        assert "Traceback" not in command("check", "nowhere.toml").err


class TestMachines:
    @pytest.mark.parametrize(
        "error",
        [
            MemoryError(),
            torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
            RuntimeError("[enforce fail at alloc_cpu.cpp:124] . DefaultCPUAllocator: can't allocate memory: you tried"),
            OSError(errno.ENOMEM, "Cannot allocate memory"),
        ],
        ids=lambda error: type(error).__name__,
    )
    def test_too_little_memory_gets_its_own_advice(
        self, command: Command, monkeypatch: pytest.MonkeyPatch, error: BaseException
    ) -> None:
        says(failing(command, monkeypatch, error).complaint, "out of memory (", "train.tokens", "a smaller model")

    def test_errors_of_files_are_named(self, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
        error = OSError(errno.ENOSPC, "No space left on device", "some/file")
        assert failing(command, monkeypatch, error).complaint == "some/file: No space left on device"
        error = OSError(errno.EBADF, "Bad file descriptor")
        assert failing(command, monkeypatch, error).complaint == "standard input: Bad file descriptor"

    def test_an_interrupt_is_130_and_the_end_of_a_file_is_none(
        self, command: Command, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert failing(command, monkeypatch, KeyboardInterrupt()).code == 130
        assert failing(command, monkeypatch, EOFError("ended")).code == 70


class TestStreams:
    """In processes of their own."""

    def run(self, redirection: str, *words: object, stdin: str = "12\n", stdout: Any = subprocess.PIPE) -> Outcome:
        command = [sys.executable, "-m", "seqloom", *map(str, words)]
        done = subprocess.run(
            ["sh", "-c", f'exec "$@" {redirection}', "sh", *command],
            input=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            check=False,
        )
        return Outcome(done.returncode, done.stdout or "", done.stderr)

    def broken(self, *words: object, stdin: str = "12\n") -> Outcome:
        """With a standard output that nobody reads any more, as after `| head -1`."""
        reader, nobody = os.pipe()
        os.close(reader)
        try:
            return self.run("", *words, stdin=stdin, stdout=nobody)
        finally:
            os.close(nobody)

    def test_a_reader_that_has_enough_is_success_whether_it_leaves_early_or_late(self, translator: Path) -> None:
        for lines in (1, 2000):
            assert self.broken("predict", translator, stdin="12\n" * lines) == Outcome(0, "", "")
        assert self.broken("data", "dates", "--count", 5000) == Outcome(0, "", "")  # in one large piece
        assert self.broken("recipes") == Outcome(0, "", "")  # when the interpreter would have flushed

    def test_a_full_disk_behind_standard_output_is_named(self, translator: Path) -> None:
        for words in (("recipes",), ("data", "dates", "--count", 5000), ("predict", translator)):
            assert self.run(">/dev/full", *words).complaint == "standard output: No space left on device"

    def test_closed_streams_are_one_line_or_not_needed(self, translator: Path) -> None:
        assert self.run("<&-", "predict", translator).complaint == "standard input is closed: give a file or a pipe"
        assert self.run(">&-", "recipes").complaint == "standard output is closed: give a file or a pipe"
        assert self.run("<&-", "recipes").code == 0
        assert self.run("2>&-", "recipes") == Outcome(0, self.run("", "recipes").out, "")
        assert self.run("2>&-", "check", "nowhere.toml") == Outcome(2, "", "")
        assert self.run("<&- >&- 2>&-", "check", "nowhere.toml") == Outcome(2, "", "")
        assert self.run("2>/dev/full", "check", "nowhere.toml") == Outcome(2, "", "")

    def test_a_training_needs_no_stream_and_its_files_do_not_take_their_place(
        self, recipe: dict[str, Any], translator: Path
    ) -> None:
        from tests.cli.conftest import toml, tsv

        assert self.run("<&- >&- 2>&-", "train", toml(recipe), "--data", tsv(), "--out", "out").code == 0
        ours, theirs = ({path.name for path in folder.iterdir()} for folder in (Path("out"), translator))
        assert ours == theirs
