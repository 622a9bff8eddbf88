"""Whether the other processes are alive: one that hangs or has ended is named, and the others need not wait for ever.

Processes meet at a store, a small server that torchrun keeps.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import torch.distributed as distributed

from seqloom.errors import SeqloomError

BEAT = 1.0  # seconds between two signs of life
limit = 600.0  # seconds to wait for another process; set by `processes.begin`


@contextmanager
def exchange() -> Iterator[None]:
    """Around each exchange: an error names the processes that did not take part."""
    began = time.monotonic()
    try:
        yield
    except RuntimeError as error:
        waited = time.monotonic() - began > 0.9 * limit
        if missing := missing_processes():
            raise SeqloomError(absence(missing, waited)) from error
        raise


def missing_processes() -> list[int]:
    """The ranks that do not answer a roll call, for which those that have failed at the same time have some seconds."""
    names = [f"failed/{rank}" for rank in range(distributed.get_world_size())]
    deadline = time.monotonic() + min(max(limit / 10, 1.0), 10.0)
    try:
        meeting = store()
        meeting.set(names[distributed.get_rank()], "")
        while not meeting.check(names) and time.monotonic() < deadline:
            time.sleep(0.1)
        return [rank for rank, name in enumerate(names) if not meeting.check([name])]
    except RuntimeError:  # without torchrun, the first process keeps the store
        return [0]


def absence(missing: Sequence[int], waited: bool) -> str:
    who = ", ".join(str(rank + 1) for rank in missing)
    what = f"has not answered for {limit / 60:g} minutes (train.timeout)" if waited else "has ended"
    return f"process {who} of {distributed.get_world_size()} {what}: the others end too; go on with --resume=auto"


@contextmanager
def signs_of_life(work: str) -> Iterator[None]:
    """For those who `await_work`: a thread says that it is going on, and at the end that it is done."""
    meeting, over = store(), threading.Event()

    def beat() -> None:
        with suppress(RuntimeError):  # torchrun has ended
            while not over.wait(BEAT):
                meeting.add(f"beats/{work}", 1)

    pulse = threading.Thread(target=beat, daemon=True)
    pulse.start()
    try:
        yield
    finally:
        over.set()
        pulse.join()
    meeting.set(f"done/{work}", "")


def await_work(work: str, rank: int) -> None:
    """Wait until a process has done some work: as long as it takes, if there are signs of life."""
    meeting, last, since = store(), -1, time.monotonic()
    try:
        while not meeting.check([f"done/{work}"]):
            if (count := meeting.add(f"beats/{work}", 0)) != last:
                last, since = count, time.monotonic()
            elif time.monotonic() - since > limit:
                raise SeqloomError(absence([rank], waited=True))
            time.sleep(0.05)
    except RuntimeError as error:
        raise SeqloomError(absence([rank], waited=False)) from error


def store() -> Any:
    return distributed.distributed_c10d._get_default_store()


def set_limits() -> None:
    """From here on nobody is waited for longer than the limit."""
    distributed.distributed_c10d._set_pg_timeout(timedelta(seconds=limit))
    store().set_timeout(timedelta(seconds=limit))
