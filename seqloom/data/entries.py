"""The entries of the data-set cache as files: which there are, how large, when last used; and what crashes left."""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from seqloom.data.checksums import MANIFEST, read_sealed
from seqloom.data.in_use import FRESH, remove_unused

NAME = "[0-9a-f]{32}"
LEFTOVER = rf"\.(partial|spool|gone|{NAME}\.old)-.+"


@dataclass(frozen=True)
class Entry:
    """One encoded data set."""

    folder: Path
    size: int  # bytes
    used: float  # when it was last opened, in seconds since 1970

    def paths(self) -> list[str]:
        """The files that it came from; none if these were lists, pipes or just written."""
        found: list[str] = []
        for note in sorted(self.folder.glob("*.json")):
            if re.fullmatch(NAME, note.stem):
                with suppress(OSError, ValueError):
                    found += read_sealed(note)["paths"]
        return list(dict.fromkeys(found))


def entries(folder: Path) -> list[Entry]:
    """What is in a cache, last used first."""
    found = []
    for path in folder.glob("[!.]*"):
        if re.fullmatch(NAME, path.name) and os.path.isdir(path):
            with suppress(OSError):  # another process has removed it
                used = os.stat(path / MANIFEST if os.path.exists(path / MANIFEST) else path).st_mtime
                found.append(Entry(path, folder_size(path), used))
    return sorted(found, key=lambda entry: -entry.used)


def folder_size(folder: Path) -> int:
    """The bytes of all files in it."""
    size = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                size += os.lstat(Path(place) / name).st_size
    return size


def remove_leftovers(folder: Path) -> None:
    """Remove what processes left that ended before they were done, and that no living one uses."""
    for path in folder.glob(".*"):
        if re.fullmatch(LEFTOVER, path.name):
            remove_unused(path)
    for path in folder.glob("[!.]*/.*"):
        if re.fullmatch(f"{NAME}/{LEFTOVER}", path.relative_to(folder).as_posix()):
            with suppress(OSError):
                if time.time() - path.lstat().st_mtime > FRESH:  # a small file, written in a moment
                    path.unlink()


def as_size(size: float) -> str:
    """1.2 GB, 345 MB, 67 KB."""
    for unit, bytes_of in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if size >= bytes_of:
            return f"{size / bytes_of:.3g} {unit}"
    return f"{size / 1e3:.3g} KB"
