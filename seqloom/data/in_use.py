"""Which folders of the cache are in use, seen across processes.

A process that uses a folder holds a shared lock on the file `lock` in it. Such a lock ends with its process.
"""

from __future__ import annotations

import os
import shutil
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from seqloom.storage.lock import flock

LOCK = "lock"
NO_LINK = getattr(os, "O_NOFOLLOW", 0)
FRESH = 60.0  # seconds in which a new folder may not be locked yet


class Hold:
    """A folder in use, until this is closed or collected. Where locks do not work, it is not locked."""

    def __init__(self, folder: Path):
        self.close: Callable[[], object] = lambda: None
        with suppress(OSError):
            try:
                handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | NO_LINK, 0o666)
            except OSError:  # a cache that others fill
                handle = os.open(folder / LOCK, os.O_RDONLY | NO_LINK)
            self.close = weakref.finalize(self, os.close, handle)
            flock(handle, shared=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def remove_unused(folder: Path) -> bool:
    """Remove a folder, unless it is in use as far as locks tell. Returns whether it is gone."""
    try:
        if not (folder / LOCK).exists() and time.time() - folder.stat().st_mtime < FRESH:
            return False
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | NO_LINK, 0o666)
        try:
            flock(handle)
            discard(folder)
        finally:
            os.close(handle)
    except OSError:
        return False
    return True


def discard(path: Path) -> None:
    """Remove a folder, or whatever has its name: all at once for those who look. Maps of its files stay valid."""
    gone = path.with_name(f".gone-{os.urandom(8).hex()}")
    os.rename(path, gone)
    if gone.is_dir() and not gone.is_symlink():
        shutil.rmtree(gone, ignore_errors=True)
    else:
        gone.unlink()
