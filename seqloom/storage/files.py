"""Files that appear whole or not at all: written under another name, forced to the disk, renamed."""

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


def write(path: Path, content: bytes) -> None:
    """The file with this content, on the disk when this returns."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def unfinished(path: Path) -> Path:
    """What a file or folder is called until it is whole."""
    path = path.absolute()  # "." has no name of its own
    return path.with_name(f".{path.name}.partial")


def finished(path: Path) -> Path:
    """What a file will be called when all of the folders it is in are whole."""
    names = (part[1 : -len(".partial")] if part.endswith(".partial") else part for part in path.parts)
    return Path(*names)


def replace_file(path: Path, content: bytes) -> None:
    partial = unfinished(path)
    try:
        write(partial, content)
        os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    sync(path.parent)


def sync(path: Path) -> None:
    """Force a file or the names in a folder to the disk."""
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
    """Say in one line that the disk refused, and what is still there."""
    try:
        yield
    except OSError as problem:
        rest = f"; {survivor()}, continue with --resume once there is room" if survivor else ""
        raise SeqloomError(f"could not write {finished(path)}: {problem.strerror or problem}{rest}") from problem


def is_exported(folder: Path | str) -> bool:
    """Whether a folder holds an exported model rather than a run."""
    return (Path(folder) / "engine.json").is_file()
