"""One writer per run folder: an advisory lock on a file in it.

The kernel releases the lock when its holder ends, however it ends: a crash leaves nothing to clean up. Whoever only
reads a run needs no lock.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Self

from seqloom.errors import SeqloomError
from seqloom.storage.files import final_path, saving

LOCK = ".lock"  # its content: the holder's process id and host


def flock(handle: int, shared: bool = False) -> None:
    """Lock a file now. An OSError: another process has it, or there are no locks (Windows, some network folders)."""
    try:
        import fcntl
    except ImportError:
        raise OSError(errno.ENOTSUP, "no fcntl") from None
    fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)


class WriteLock:
    """The right to write into one run folder. Where there are no file locks, `say` gets a line about it."""

    def __init__(self, say: Callable[[str], None] = lambda line: None):
        self.say = say
        self.handle: int | None = None
        self.folder = Path()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.release()

    def acquire(self, folder: Path) -> None:
        """Take the lock of a folder, or name who has it."""
        path = folder / LOCK
        with saving(path):
            while self.handle is None:
                handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
                if not self._lock(handle, folder):
                    os.close(handle)
                    path.unlink(missing_ok=True)
                    return
                if is_file_at(path, handle):
                    self.handle, self.folder = handle, folder
                else:  # its last holder has removed it in the meantime
                    os.close(handle)
            os.ftruncate(self.handle, 0)
            os.pwrite(self.handle, f"{os.getpid()} {socket.gethostname()}".encode(), 0)

    def _lock(self, handle: int, folder: Path) -> bool:
        """Whether the lock was taken; not where there are none."""
        try:
            flock(handle)
        except BlockingIOError:
            pid, _, host = os.pread(handle, 300, 0).decode(errors="replace").partition(" ")
            os.close(handle)
            who = f"process {pid} on {host}" if pid.isdecimal() and host.isprintable() else "another process"
            raise SeqloomError(
                f"{final_path(folder)} is being written by {who}: wait until it has ended, or choose another --out"
            ) from None
        except OSError as problem:
            reason = problem.strerror
            self.say(f"{final_path(folder)} cannot be locked ({reason}): make sure that nobody else writes into it.")
            return False
        return True

    def follow(self, folder: Path) -> None:
        """The folder was renamed."""
        self.folder = folder

    def release(self) -> None:
        if self.handle is not None:
            (self.folder / LOCK).unlink(missing_ok=True)
            os.close(self.handle)
            self.handle = None


def is_file_at(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(handle))
    except FileNotFoundError:
        return False
