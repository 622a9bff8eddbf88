"""Ctrl-C and SIGTERM end a training after the update that is under way."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Self

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Terminated(KeyboardInterrupt):
    """SIGTERM, where Ctrl-C is a KeyboardInterrupt."""


@contextmanager
def sigterm_interrupts() -> Iterator[None]:
    """Within the block SIGTERM is an exception, as Ctrl-C is: files are closed, and a command can say what is left.

    Not under torchrun, whose SIGTERM must end a process that waits for another.
    """
    if threading.current_thread() is not threading.main_thread() or "WORLD_SIZE" in os.environ:
        yield
        return

    def terminate(number: int, frame: FrameType | None) -> None:
        raise Terminated

    previous = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


class Interruption:
    """Notes a signal in `received`, for the training loop to look at. A second signal aborts at once."""

    received = 0

    def __enter__(self) -> Self:
        self.previous: dict[int, Any] = {}
        self.received, self.first = 0, 0.0
        if threading.current_thread() is threading.main_thread():
            self.previous = {number: signal.signal(number, self._note) for number in SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._restore()

    def _restore(self) -> None:
        for number, handler in self.previous.items():
            signal.signal(number, handler)
        self.previous = {}

    def _note(self, number: int, frame: FrameType | None) -> None:
        # The terminal sends Ctrl-C to each process, and torchrun sends it again: that is still the first signal.
        echo = "WORLD_SIZE" in os.environ and time.monotonic() - self.first < 2.0
        if self.received and not echo:
            self._restore()
            signal.raise_signal(number)
        elif not self.received:
            self.received, self.first = number, time.monotonic()
