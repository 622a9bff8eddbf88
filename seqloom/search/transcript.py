"""Transcripts: the tokens of a hypothesis with their times and totals, and how the rows of a group store them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from seqloom.arrays import as_numpy
from seqloom.search.merging import Group
from seqloom.types import State


class Transcript(NamedTuple):
    """Tokens; how many states of the source had been read by then; the total of the hypothesis by then."""

    tokens: tuple[int, ...] = ()
    times: tuple[int, ...] = ()
    sums: tuple[float, ...] = ()

    def extend(self, other: Transcript) -> Transcript:
        return Transcript(self.tokens + other.tokens, self.times + other.times, self.sums + other.sums)

    def first(self, count: int) -> Transcript:
        return Transcript(self.tokens[:count], self.times[:count], self.sums[:count])


@dataclass(frozen=True)
class FinishedOutput:
    """Its likeliest alignment, the log-probability of that one, and of all alignments together."""

    transcript: Transcript
    best: float
    total: float


@dataclass(frozen=True)
class TranscriptColumns:
    """The transcripts of all rows, in numpy."""

    columns: tuple[np.ndarray, ...]  # tokens, times, sums (rows, L)
    counts: np.ndarray  # (rows,)

    @classmethod
    def of(cls, rows: State) -> TranscriptColumns:
        return cls(tuple(as_numpy(rows[name]) for name in Transcript._fields), as_numpy(rows["count"]))

    def row(self, row: int) -> Transcript:
        return Transcript(*(tuple(each[row, : self.counts[row]].tolist()) for each in self.columns))


def trim(group: Group) -> Group:
    """Without columns beyond the longest transcript."""
    rows, longest = group.rows, int(group.rows["count"].max())
    return Group({**rows, **{name: rows[name][:, :longest] for name in Transcript._fields}}, group.totals)
