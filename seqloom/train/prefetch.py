"""The next batch, made beside the training while this one is computed with."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor

from seqloom.types import Batch


class Ahead:
    """Batches by a function of where they stand, which may have been asked to begin with one before it is wanted."""

    def __init__(self, make: Callable[..., Batch]):
        self.make = make
        self.worker: ThreadPoolExecutor | None = None
        self.begun: dict[tuple[Hashable, ...], Future[Batch]] = {}

    def begin(self, *place: Hashable) -> None:
        if self.worker is None:
            self.worker = ThreadPoolExecutor(1, thread_name_prefix="batches")
        if place not in self.begun:
            self.begun = {place: self.worker.submit(self.make, *place)}

    def get(self, *place: Hashable) -> Batch:
        future = self.begun.pop(place, None)
        return self.make(*place) if future is None else future.result()

    def close(self) -> None:
        """Whoever asks again opens it again."""
        if self.worker is not None:
            self.worker.shutdown(wait=True, cancel_futures=True)
        self.worker, self.begun = None, {}
