"""Exported models: a folder that answers without torch.

    engine.json        {"format", "seqloom", "engine", "settings", "recipe", "files", "measured"}
    target.*, source.* what the codecs learned
    model/             what the engine reads; engine.json says how large each file is

A folder is written under a temporary name and appears whole. No file is a pickle.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

import numpy as np

from seqloom.contracts import Constraint, Finder, Search
from seqloom.errors import SeqloomError, one_line, show
from seqloom.storage.files import read_json
from seqloom.types import Hypothesis
from seqloom.version import __version__

FORMAT = 1
ENGINES = {"ctranslate2": "CTranslate2", "onnx": "Onnx"}  # a file of this folder, and its class
AGAIN = "export the run again"
MOST = 1_000_000  # of any setting of an engine: tokens, positions, the ratio of lengths


class Engine(Finder):
    """Computes the outputs of an exported model."""

    tokens: int | None = None  # of the target vocabulary: a model that writes others is damaged

    @classmethod
    @abstractmethod
    def load(cls, folder: Path, settings: dict[str, Any], threads: int) -> Self:
        """Load what was exported."""

    @abstractmethod
    def compute(
        self,
        encoded: Sequence[Sequence[np.ndarray]],
        search: Search,
        prefix: np.ndarray | None,
        constraints: Sequence[Constraint],
        attention: bool,
        details: bool,
    ) -> list[list[Hypothesis]]:
        """As `find`, without checks."""

    def find(
        self,
        encoded: Sequence[Sequence[np.ndarray]],
        search: Search,
        prefix: np.ndarray | None = None,
        constraints: Sequence[Constraint] = (),
        attention: bool = False,
        details: bool = True,
    ) -> list[list[Hypothesis]]:
        try:
            found = self.compute(encoded, search, prefix, constraints, attention, details)
        except (SeqloomError, MemoryError):
            raise
        except Exception as error:  # every library raises errors of its own
            reason = f"{type(error).__name__}: {one_line(error)[:120]}"
            raise SeqloomError(f"the exported model cannot be computed ({reason}); {AGAIN}") from error
        written = [token for each in found for one in each for token in one.tokens]
        if self.tokens is not None and written and not 0 <= min(written) <= max(written) < self.tokens:
            raise SeqloomError(f"the exported model writes tokens that its vocabulary of {self.tokens} lacks; {AGAIN}")
        return found


@dataclass(frozen=True)
class Manifest:
    """The content of engine.json."""

    engine: str
    settings: dict[str, Any]  # the engine's
    recipe: dict[str, Any]  # the run's tables task, search and data
    files: dict[str, int]  # the model's files and their sizes in bytes
    measured: dict[str, Any]  # the task's metrics, of the run and of the export

    def content(self) -> dict[str, Any]:
        return {"format": FORMAT, "seqloom": __version__, **vars(self)}

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """Read it, and check what is relied on later."""
        path = folder / "engine.json"
        found = read_json(path, remedy=AGAIN)
        version = found.get("format")
        if not isinstance(version, int):
            raise SeqloomError(f'{path}: "format" must be a whole number, not {show(version)}')
        if version > FORMAT:
            raise SeqloomError(
                f"{folder} has export format {version}, this seqloom ({__version__}) reads up to {FORMAT}: "
                "upgrade seqloom to use it"
            )
        if not isinstance(found.get("engine"), str) or found["engine"] not in ENGINES:
            known = ", ".join(ENGINES)
            raise SeqloomError(f'{path}: "engine" is {show(found.get("engine"))}; expected one of {known}')
        for name in ("settings", "recipe", "files", "measured"):
            if not isinstance(found.get(name), dict):
                raise SeqloomError(f'{path}: "{name}" must be an object; {AGAIN}')
        for name, value in found["settings"].items():
            if type(value) not in (int, float) or not abs(value) <= MOST:  # not: NaN compares with nothing
                raise SeqloomError(
                    f"{path}: settings.{name} = {show(value)}: expected a number up to {MOST:,}; {AGAIN}"
                )
        return cls(*(found[name] for name in ("engine", "settings", "recipe", "files", "measured")))


def load_engine(folder: Path, manifest: Manifest, threads: int = 1) -> Engine:
    """The engine of an exported folder, loaded."""
    check_files(folder / "model", manifest.files)
    part: type[Engine] = getattr(import_module(f"seqloom.engines.{manifest.engine}"), ENGINES[manifest.engine])
    try:
        return part.load(folder / "model", manifest.settings, threads)
    except SeqloomError:
        raise
    except Exception as error:  # every library raises errors of its own
        raise SeqloomError(f"{folder}: its model cannot be read ({one_line(error)}); {AGAIN}") from None


def check_files(folder: Path, sizes: dict[str, int]) -> None:
    """Refuse files of another size than they were exported with, and links and pipes, which a library would open."""
    if folder.is_symlink() or not folder.is_dir():
        raise SeqloomError(f"{folder} is no folder; {AGAIN}")
    for name in {*os.listdir(folder), *sizes}:
        file = folder / name
        regular = file.is_file() and not file.is_symlink()
        if not regular or file.stat().st_size != sizes.get(name, file.stat().st_size):
            raise SeqloomError(f"{file} is missing or damaged; {AGAIN}")


def require_packages(*packages: str) -> None:
    """Fail with what to install if a package is missing."""
    for package in packages:
        if find_spec(package) is None:
            raise SeqloomError(f"this needs {package}: install it with pip install 'seqloom[engines]'")
