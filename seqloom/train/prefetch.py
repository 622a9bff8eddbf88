"""The next batch, made in a thread while the model is computing with this one."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor

from seqloom.types import Batch


class Prefetch:
    """Prefetches one batch in a thread; `make` must be a pure function of the key."""

    def __init__(self, make: Callable[..., Batch]):
        self.make = make
        self.worker: ThreadPoolExecutor | None = None
        self.pending: dict[tuple[Hashable, ...], Future[Batch]] = {}

    def begin(self, *key: Hashable) -> None:
        """Start making the batch with this key; one that was never fetched is dropped."""
        if self.worker is None:
            self.worker = ThreadPoolExecutor(1, thread_name_prefix="batches")
        if key not in self.pending:
            self.pending = {key: self.worker.submit(self.make, *key)}

    def get(self, *key: Hashable) -> Batch:
        future = self.pending.pop(key, None)
        return self.make(*key) if future is None else future.result()

    def close(self) -> None:
        """End the thread; `begin` starts another."""
        if self.worker is not None:
            self.worker.shutdown(wait=True, cancel_futures=True)
        self.worker, self.pending = None, {}
