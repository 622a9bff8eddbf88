"""Ctrl-C and SIGTERM end a training after the update that is under way."""

from __future__ import annotations

import signal
import threading
import time
from types import FrameType, TracebackType
from typing import Any, Self

from seqloom.train import processes


class Interruption:
    """Notes a signal in `received`, for the training loop to look at. A second signal aborts at once."""

    received = False

    def __enter__(self) -> Self:
        self.previous: dict[int, Any] = {}
        self.received, self.first = False, 0.0
        if threading.current_thread() is threading.main_thread():
            self.previous = {number: signal.signal(number, self._note) for number in (signal.SIGINT, signal.SIGTERM)}
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
        echo = processes.world_size() > 1 and time.monotonic() - self.first < 2.0
        if self.received and not echo:
            self._restore()
            signal.raise_signal(number)
        elif not self.received:
            self.received, self.first = True, time.monotonic()
