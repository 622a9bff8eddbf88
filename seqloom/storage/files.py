"""Files that appear complete or not at all: written under another name, forced to the disk, renamed."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from seqloom.errors import SeqloomError


def to_json(value: Any) -> bytes:
    return json.dumps(value, indent=2, ensure_ascii=False).encode() + b"\n"


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object of a run folder."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError) as problem:
        raise SeqloomError(f"{path} cannot be read ({problem}); restore it from a copy of the run") from None
    if not isinstance(value, dict):
        raise SeqloomError(f"{path} must hold a JSON object; restore it from a copy of the run")
    return value


def write(path: Path, content: bytes) -> None:
    """Write a file and force it to the disk."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def partial_path(path: Path) -> Path:
    """The name of a file or folder until it is complete."""
    path = path.absolute()  # "." has no name of its own
    return path.with_name(f".{path.name}.partial")


def final_path(path: Path) -> Path:
    """The name of a file once it and its folders are complete."""
    names = (part[1 : -len(".partial")] if part.endswith(".partial") else part for part in path.parts)
    return Path(*names)


def replace_file(path: Path, content: bytes) -> None:
    """Write a file, which appears complete or not at all."""
    partial = partial_path(path)
    try:
        write(partial, content)
        os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    sync(path.parent)


def sync(path: Path) -> None:
    """Force a file, or the names in a folder, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def saving(path: Path, survivor: Callable[[], str] | None = None) -> Iterator[None]:
    """Report a failed write in one line, with what `survivor` names as still intact."""
    try:
        yield
    except OSError as problem:
        rest = f"; {survivor()}, continue with --resume once there is room" if survivor else ""
        raise SeqloomError(f"could not write {final_path(path)}: {problem.strerror or problem}{rest}") from problem


def is_exported(folder: Path | str) -> bool:
    """Whether a folder holds an exported model rather than a run."""
    return (Path(folder) / "engine.json").is_file()
