"""Back-pointers: a search records one step at a time, and hypotheses are read off by following parents back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from seqloom.arrays import Array, as_numpy
from seqloom.errors import SeqloomError
from seqloom.search.options import NOT_FINITE


@dataclass(frozen=True)
class Step:
    """The best continuations of the sources that are not done, best first."""

    entries: Array  # (B,): which source
    parents: Array  # (B, K): which continuation of the step before
    tokens: Array  # (B, K)
    log_probs: Array  # (B, K): of the token
    totals: Array  # (B, K): what the output so far is ranked by; -inf where there is no continuation
    finished: Array  # (B, K)
    times: Array | None = None  # (B, K): how many states of the source had been read; None: all


@dataclass(frozen=True)
class Path:
    """One hypothesis."""

    tokens: list[int]  # the prefix included
    log_probs: list[float]  # of the tokens after the prefix
    times: list[int] | None  # of all tokens, 0 in the prefix
    total: float


@dataclass(frozen=True)
class Backtrace:
    """The steps of a search in numpy."""

    steps: list[Step]
    rows: list[dict[int, int]]  # of each step: source -> row
    prefixes: list[list[int]]  # of each source

    @classmethod
    def of(cls, recorded: Iterable[Step], prefixes: list[list[int]]) -> Backtrace:
        arrays = [[None if each is None else as_numpy(each) for each in vars(step).values()] for step in recorded]
        steps = [Step(*each) for each in arrays]
        if any(np.isnan(step.totals).any() for step in steps):
            raise SeqloomError(NOT_FINITE)
        return cls(steps, [{int(entry): row for row, entry in enumerate(step.entries)} for step in steps], prefixes)

    def finished(self) -> Iterator[tuple[int, Path]]:
        """Every finished hypothesis, and its source."""
        for number, step in enumerate(self.steps):
            for row, slot in np.argwhere(step.finished).tolist():
                yield int(step.entries[row]), self.path(int(step.entries[row]), number, slot)

    def path(self, entry: int, number: int, slot: int) -> Path:
        """The hypothesis of a source that is in a slot after step `number`; before the first step, its prefix."""
        total = float(self.steps[number].totals[self.rows[number][entry], slot]) if self.steps else 0.0
        tokens, log_probs, times = [], [], []
        while number >= 0:
            step, row = self.steps[number], self.rows[number][entry]
            tokens.append(int(step.tokens[row, slot]))
            log_probs.append(float(step.log_probs[row, slot]))
            if step.times is not None:
                times.append(int(step.times[row, slot]))
            slot = int(step.parents[row, slot])
            number -= 1
        prefix = self.prefixes[entry]
        read = [0] * len(prefix) + times[::-1] if len(times) == len(tokens) else None
        return Path(prefix + tokens[::-1], log_probs[::-1], read, total)
