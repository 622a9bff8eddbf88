"""One tiny translator, one tiny language model, and the command line called in process."""

from __future__ import annotations

import copy
import io
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

import seqloom
from seqloom.cli.main import main
from seqloom.train.display import Display

TEXT = {"type": "text", "units": "char"}
RECURRENT = {"type": "recurrent", "size": 16, "embedding_size": 8}
TRANSLATOR: dict[str, Any] = {
    "search": {"type": "beam", "beam_size": 3},
    "task": {"source": TEXT, "target": TEXT, "metrics": ["exact", "cer"]},
    "encoder": RECURRENT,
    "decoder": {**RECURRENT, "attention": {"type": "additive", "size": 8}},
    "train": {"tokens": 256, "steps": 20, "validate_every": 10, "learning_rate": 0.01, "device": "cpu"},
}
LANGUAGE_MODEL: dict[str, Any] = {
    "search": {"type": "sample"},
    "task": {"target": TEXT},
    "decoder": RECURRENT,
    "train": {"tokens": 256, "steps": 5, "learning_rate": 0.01, "device": "cpu"},
}


def pairs(count: int = 60) -> list[tuple[str, str]]:
    """Numbers and the same backwards."""
    return [(str(number), str(number)[::-1]) for number in range(100, 100 + count)]


@dataclass(frozen=True)
class Outcome:
    """What a command left: its exit code and what it said."""

    code: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """The one line of a user's mistake."""
        lines = self.err.splitlines()
        assert self.code == 2, self
        assert len(lines) == 1, self.err
        assert lines[0].startswith("seqloom: ")
        assert "Traceback" not in self.err
        return lines[0].removeprefix("seqloom: ")


class Standard(io.TextIOWrapper):
    """Standard input with given bytes: a file, so that it has a descriptor too."""

    def __init__(self, content: bytes):
        file = tempfile.TemporaryFile()  # noqa: SIM115  # closed with this
        file.write(content)
        file.seek(0)
        super().__init__(file, encoding="utf-8")


Command = Callable[..., Outcome]


@pytest.fixture(autouse=True)
def quiet_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test stands in a folder of its own, with a cache of its own, on one thread."""
    monkeypatch.setenv("SEQLOOM_CACHE", str(tmp_path / ".cache"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """`seqloom ...` in this process."""

    def run(*arguments: object, stdin: bytes | str = b"") -> Outcome:
        content = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "argv", ["seqloom", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", Standard(content))
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main()
        said = capsys.readouterr()
        return Outcome(stop.value.code if isinstance(stop.value.code, int) else 0, said.out, said.err)

    return run


@pytest.fixture
def recipe() -> dict[str, Any]:
    return copy.deepcopy(TRANSLATOR)


@pytest.fixture(scope="session")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that reverses numbers, not well."""
    return trained(tmp_path_factory.mktemp("translator"), TRANSLATOR, pairs())


@pytest.fixture(scope="session")
def language_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("language-model"), LANGUAGE_MODEL, [target for _, target in pairs()])


def trained(folder: Path, recipe: dict[str, Any], data: list[Any]) -> Path:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEQLOOM_CACHE", str(folder / "cache"))
        seqloom.fit(data, recipe, out=folder / "run", display=Display.quiet())
    torch.set_num_threads(threads)
    return folder / "run"


def written(path: str | Path, content: str | bytes) -> Path:
    Path(path).write_bytes(content.encode() if isinstance(content, str) else content)
    return Path(path)


def tsv(path: str | Path = "pairs.tsv", rows: list[tuple[str, str]] | None = None) -> Path:
    rows = pairs() if rows is None else rows
    return written(path, "".join(f"{source}\t{target}\n" for source, target in rows))


def toml(recipe: dict[str, Any], path: str | Path = "recipe.toml") -> Path:
    import tomli_w

    return written(path, tomli_w.dumps(recipe))
