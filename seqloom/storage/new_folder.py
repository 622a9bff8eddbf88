"""New folders: filled under another name, forced to the disk, renamed. One process at a time may fill a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from seqloom.errors import SeqloomError
from seqloom.storage.files import partial_path, remove, saving, sync, sync_tree
from seqloom.storage.lock import LOCK, WriteLock


@contextmanager
def new_folder(path: Path, lock: WriteLock) -> Iterator[Path]:
    """A folder to fill, which gets its name when it is complete. The lock is held from the beginning, and kept."""
    refuse_existing(path)
    partial = partial_path(path)
    with saving(path):
        partial.mkdir(parents=True, exist_ok=True)
        lock.acquire(partial)
        try:
            refuse_existing(path)  # whoever held the lock may have been quicker
            for leftover in partial.iterdir():
                if leftover.name != LOCK:
                    remove(leftover)
            yield partial
            sync_tree(partial)
            os.rename(partial, path)  # over an empty folder too
        except BaseException:
            remove(partial)
            raise
        lock.follow(path)
        sync(path.absolute().parent)


def refuse_existing(path: Path) -> None:
    """Refuse a path that is taken: a run is never overwritten."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise SeqloomError(f"{path} already exists: continue it with --resume, or choose another --out")
