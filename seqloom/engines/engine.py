"""Exported models: a folder that answers without torch.

    engine.json        {"format", "seqloom", "engine", "settings", "recipe", "files", "measured"}
    target.*, source.* what the codecs learned
    model/             what the engine reads; engine.json says how large each file is

A folder is written under a temporary name and appears whole. No file is a pickle.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

from seqloom.contracts import Finder
from seqloom.errors import SeqloomError
from seqloom.version import __version__

FORMAT = 1
ENGINES = {"ctranslate2": "CTranslate2", "onnx": "Onnx"}  # a file of this folder, and its class


class Engine(Finder):
    """Computes the outputs of an exported model."""

    @classmethod
    @abstractmethod
    def load(cls, folder: Path, settings: dict[str, Any], threads: int) -> Self:
        """Load what was exported."""


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
        try:
            found = json.loads(path.read_bytes())
        except (OSError, ValueError) as problem:
            raise SeqloomError(f"{path} cannot be read ({problem}); export the run again") from None
        version = found.get("format") if isinstance(found, dict) else None
        if not isinstance(version, int):
            raise SeqloomError(f'{path}: "format" must be a whole number, not {json.dumps(version)}')
        if version > FORMAT:
            raise SeqloomError(
                f"{folder} has export format {version}, this seqloom ({__version__}) reads up to {FORMAT}: "
                "upgrade seqloom to use it"
            )
        if found.get("engine") not in ENGINES:
            known = ", ".join(ENGINES)
            raise SeqloomError(f'{path}: "engine" is {json.dumps(found.get("engine"))}; expected one of {known}')
        for name in ("settings", "recipe", "files", "measured"):
            if not isinstance(found.get(name), dict):
                raise SeqloomError(f'{path}: "{name}" must be an object; export the run again')
        return cls(*(found[name] for name in ("engine", "settings", "recipe", "files", "measured")))


def load_engine(folder: Path, manifest: Manifest, threads: int = 1) -> Engine:
    """The engine of an exported folder, loaded."""
    for name, size in manifest.files.items():
        file = folder / "model" / name
        if not file.is_file() or file.stat().st_size != size:
            raise SeqloomError(f"{file} is missing or damaged; export the run again")
    part: type[Engine] = getattr(import_module(f"seqloom.engines.{manifest.engine}"), ENGINES[manifest.engine])
    try:
        return part.load(folder / "model", manifest.settings, threads)
    except SeqloomError:
        raise
    except Exception as error:  # every library raises errors of its own
        reason = " ".join(str(error).split()) or type(error).__name__
        raise SeqloomError(f"{folder}: its model cannot be read ({reason}); export the run again") from None


def require_packages(*packages: str) -> None:
    """Fail with what to install if a package is missing."""
    for package in packages:
        if find_spec(package) is None:
            raise SeqloomError(f"this needs {package}: install it with pip install 'seqloom[engines]'")
