"""One writer per run folder, whoever it is and however it ends."""

import errno
import fcntl
import os
import signal
import socket
from pathlib import Path

import pytest

from seqloom.errors import SeqloomError
from seqloom.storage.lock import LOCK, WriteLock
from seqloom.storage.run import Run


def test_a_second_writer_is_refused_in_one_line_that_names_the_first(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", {})
    with WriteLock() as first, WriteLock() as second:
        Run.open(run.path, first)
        with pytest.raises(SeqloomError) as caught:
            Run.open(run.path, second)
        assert f"run is being written by process {os.getpid()} on {socket.gethostname()}" in str(caught.value)
        assert "\n" not in str(caught.value)
        assert Run.open(run.path).recipe() == {}  # whoever only reads need not wait
    with WriteLock() as third:
        Run.open(run.path, third)
    assert not (run.path / LOCK).exists()


def test_a_refused_writer_removes_nothing(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", {})
    with WriteLock() as first, WriteLock() as second:
        Run.open(run.path, first)
        (run.path / ".model.safetensors.partial").write_bytes(b"half")
        with pytest.raises(SeqloomError):
            Run.open(run.path, second)
        assert (run.path / ".model.safetensors.partial").exists()


def test_the_lock_of_a_new_run_is_held_from_the_beginning(tmp_path: Path) -> None:
    complaints = []

    def meddle(folder: Path) -> None:
        with pytest.raises(SeqloomError, match="run is being written by process") as caught:
            Run.create(tmp_path / "run", {})
        complaints.append(caught)

    with WriteLock() as first, WriteLock() as second:
        run = Run.create(tmp_path / "run", {"seed": 1}, meddle, first)
        with pytest.raises(SeqloomError, match="is being written by process"):
            Run.open(run.path, second)
    assert len(complaints) == 1
    assert Run.open(run.path).recipe() == {"seed": 1}
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["checkpoints", "config.toml", "format.json", "run"]


def test_a_writer_that_was_killed_holds_nothing(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", {})
    ready, done = os.pipe()
    child = os.fork()
    if child == 0:
        lock = WriteLock()
        Run.open(run.path, lock)
        os.write(done, b".")
        signal.pause()
        os._exit(1)
    os.read(ready, 1)
    try:
        with WriteLock() as lock, pytest.raises(SeqloomError, match=f"process {child} on"):
            Run.open(run.path, lock)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert (run.path / LOCK).exists()
    with WriteLock() as lock:
        Run.open(run.path, lock)


def test_a_lock_whose_file_was_removed_in_the_meantime_is_taken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The holder before removes the file as it ends: a lock on a file without a name would keep nobody out."""
    genuine, calls = fcntl.flock, []

    def late(handle: int, how: int) -> None:
        genuine(handle, how)
        calls.append(handle)
        if len(calls) == 1:
            (tmp_path / LOCK).unlink()

    monkeypatch.setattr(fcntl, "flock", late)
    with WriteLock() as first, WriteLock() as second:
        first.acquire(tmp_path)
        assert len(calls) == 2
        with pytest.raises(SeqloomError, match="is being written"):
            second.acquire(tmp_path)


def test_where_there_are_no_locks_a_line_says_so_and_work_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsupported(handle: int, how: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", unsupported)
    said: list[str] = []
    with WriteLock(said.append) as lock:
        run = Run.create(tmp_path / "run", {}, lock=lock)
    assert len(said) == 1
    assert "run cannot be locked" in said[0]
    assert os.strerror(errno.ENOLCK) in said[0]
    assert not (run.path / LOCK).exists()
