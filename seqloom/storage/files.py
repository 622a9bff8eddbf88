"""Files of run and exported folders: read only if they are regular and small, written complete or not at all.

A folder may come from a stranger. Only regular files are read, since a device or a pipe need not end, and none that is
larger than its kind ever gets. Symbolic links in a folder are not followed, wherever they lead: one could name a file
of the reader's own. The folder itself may be one. What is written has another name first, is forced to the disk and
then renamed.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from seqloom.errors import SeqloomError, one_line

MEGABYTE = 1 << 20
SMALL = 16 * MEGABYTE  # bytes that a file of settings may have
LARGE = 64 * MEGABYTE  # a vocabulary, or the metrics of a training
DEEPEST = 32  # tables in each other
RESTORE = "restore it from a copy of the run"


def read_bytes(path: Path, most: int = SMALL, remedy: str = RESTORE, own: bool = False) -> bytes:
    """The content of a regular file that is no link and has at most that many bytes; errors are one line.

    A file that the user named (`own`) may be a link or a pipe; the limit holds for it, too.
    """
    try:
        with open(path, "rb") if own else os.fdopen(open_regular(path), "rb") as file:
            content = file.read(most + 1)
    except OSError as problem:
        raise SeqloomError(f"{path} cannot be read ({problem.strerror or problem}); {remedy}") from None
    if len(content) > most:
        raise SeqloomError(f"{path} is larger than {most // MEGABYTE} MB, the limit for such a file; {remedy}")
    return content


def open_regular(path: Path) -> int:
    """A descriptor of a regular file. Opening does not wait, not even for the writer of a pipe."""
    if path.is_symlink():
        raise OSError(f"it is a symbolic link to {os.readlink(path)}, and links are not followed")
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError("it is no regular file")
    return handle


def check_regular(path: Path, remedy: str = RESTORE) -> None:
    """Refuse what `read_bytes` would, for a file of any size that a library opens."""
    try:
        os.close(open_regular(path))
    except OSError as problem:
        raise SeqloomError(f"{path} cannot be read ({problem.strerror or problem}); {remedy}") from None


def refuse_links(*paths: Path) -> None:
    """Refuse links and pipes where a run is written: a link could lead to a file that is not the run's."""
    for path in paths:
        if path.is_symlink() or (path.exists() and not path.is_file() and not path.is_dir()):
            raise SeqloomError(f"{path} is a link or a pipe, which a run does not have; put a copy in its place")


def read_json(path: Path, most: int = SMALL, remedy: str = RESTORE) -> dict[str, Any]:
    """A JSON object, nested no deeper and with no larger integers than we write."""
    content = read_bytes(path, most, remedy)
    try:
        value = json.loads(content)
        check_plain(value)
    except (ValueError, RecursionError) as problem:
        raise SeqloomError(f"{path} cannot be read ({one_line(problem)}); {remedy}") from None
    if not isinstance(value, dict):
        raise SeqloomError(f"{path} must hold a JSON object; {remedy}")
    return value


def check_plain(value: Any) -> None:
    """Raise ValueError for what JSON and TOML can say and nothing of ours does.

    That is deep nesting, which recursion would fail on, integers beyond 64 bits, and half surrogate pairs, which
    cannot be written again.
    """
    level = [value]
    for _ in range(DEEPEST + 2):
        following: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                following += [*each, *each.values()]
            elif isinstance(each, list):
                following += each
            elif isinstance(each, int) and not -(1 << 63) <= each < 1 << 63:
                raise ValueError(f"an integer of {each.bit_length()} bits, where 64 are the most")
            elif isinstance(each, str) and not each.isascii() and any("\ud800" <= one <= "\udfff" for one in each):
                raise ValueError("half a surrogate pair")
        if not following:
            return
        level = following
    raise ValueError(f"nested more than {DEEPEST} levels deep")


def to_json(value: Any) -> bytes:
    return json.dumps(value, indent=2, ensure_ascii=False).encode() + b"\n"


def open_unlinked(path: str, flags: int) -> int:
    """For `open`: not through a symbolic link, which a stranger could have left under our temporary name."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)


def write(path: Path, content: bytes) -> None:
    """Write a file and force it to the disk; errors name it."""
    try:
        with open(path, "wb", opener=open_unlinked) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as problem:
        problem.filename = problem.filename or str(final_path(path))
        raise


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


def sync_tree(folder: Path) -> None:
    """Force all files of a folder, and their names, to the disk."""
    for path in folder.rglob("*"):
        sync(path)
    sync(folder)


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
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
