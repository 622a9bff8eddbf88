"""The beam of a prefix beam search."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from seqloom.arrays import NEVER, Array, as_numpy, like, namespace
from seqloom.search.constraints.combined import Constraints
from seqloom.search.merging import Group
from seqloom.search.transcript import FinishedOutput, Transcript, TranscriptColumns
from seqloom.types import State


@dataclass(frozen=True)
class Prefixes:
    """Hypotheses between two frames, what all of a source have in common, and finished outputs."""

    group: Group
    constraints: Constraints  # without states: those are in the rows of the group
    common: tuple[Transcript, ...]  # of each source: the rows of the group do not repeat it
    finished: tuple[dict[tuple[int, ...], FinishedOutput], ...]  # of each source, by tokens

    @property
    def state(self) -> State:
        """The decoder's."""
        return self.group.rows["state"]

    def add_finished(self, rows: State, totals: Array) -> Prefixes:
        """With the outputs that end here; equal ones are merged.  totals (B, W): -inf where a row does not end"""
        finished = [dict(each) for each in self.finished]
        values, columns = as_numpy(totals), TranscriptColumns.of(rows)
        for source, row in np.argwhere(values > NEVER).tolist():
            whole = self.common[source].extend(columns.row(source * values.shape[1] + row))
            new = FinishedOutput(whole, float(values[source, row]), float(values[source, row]))
            old = finished[source].get(whole.tokens, new)
            if old is not new:
                likelier = max(old, new, key=lambda one: one.best)
                new = replace(likelier, total=float(np.logaddexp(old.total, new.total)))
            finished[source][whole.tokens] = new
        return replace(self, finished=tuple(finished))

    def factor_out_common(self) -> Prefixes:
        """Move what all rows of a source begin with to `common`: a stream may be endless.

        Only where it was written at the same time: later, another alignment of it may become the best.
        """
        if any(self.finished):
            return self
        rows, totals = self.group.rows, as_numpy(self.group.totals)
        stored, width = TranscriptColumns.of(rows), totals.shape[1]
        counts = stored.counts.reshape(totals.shape)
        common, cut = list(self.common), np.zeros(totals.shape, dtype=np.int64)
        for source, live in enumerate(totals > NEVER):
            if not live.any():
                continue
            shortest = counts[source][live].min()
            columns = [each.reshape(*totals.shape, -1)[source, live, :shortest] for each in stored.columns]
            agreed = int(np.stack([(each == each[0]).all(0) for each in columns]).all(0).cumprod().sum())
            best = stored.row(source * width + int(totals[source].argmax()))
            common[source] = common[source].extend(best.first(agreed))
            cut[source] = agreed
        if not cut.any():
            return self
        xp, drop = namespace(rows["count"]), like(rows["count"], cut.flatten())
        left = (rows["count"] - drop).clip(0, None)
        places = xp.arange(int(left.max()), device=drop.device) + drop[:, None]  # (rows, L)
        places = places.clip(None, rows["tokens"].shape[1] - 1)
        each = xp.arange(len(drop), device=drop.device)[:, None]
        fewer = {name: rows[name][each, places] for name in Transcript._fields}
        return replace(self, group=Group({**rows, **fewer, "count": left}, self.group.totals), common=tuple(common))
