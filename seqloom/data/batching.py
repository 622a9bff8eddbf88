"""Batches: rows of similar length, as many as a budget of tokens allows.

A plan is a pure function of lengths, budget, seed and epoch, so that a resumed training goes on with the batch it would
have seen next. It holds two arrays and no object per example.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seqloom.errors import SeqloomError

JITTER = 1.5  # tokens, added to the sort key of a row
POOL_BATCHES = 200  # shuffled rows are sorted in pools of so many batches: more means less padding, but less variety
ROUNDS = 1_000_000  # where rows come repeatedly within an epoch, their rounds are numbered from this times the epoch


@dataclass(frozen=True)
class Plan:
    """Batches of row numbers, or of the windows [begin, end) of a running text."""

    rows: np.ndarray  # (N,): every row once; (N, 2): windows
    offsets: np.ndarray  # (batches, 2): where each batch begins and ends in rows
    stride: int = 0  # batch n continues the text of batch n - stride; 0: no batch continues another

    def __len__(self) -> int:
        return len(self.offsets)

    def __getitem__(self, index: int) -> np.ndarray:
        begin, end = self.offsets[index]
        return self.rows[begin:end]

    def continues(self, index: int) -> bool:
        """Whether a batch continues the text of an earlier one."""
        return 0 < self.stride <= index

    def names(self, index: int) -> list[int]:
        """The numbers of the rows of a batch, or where its windows begin, for messages."""
        rows = self[index]
        return [int(row) for row in (rows[:, 0] if rows.ndim > 1 else rows)]


def plan(lengths: np.ndarray, tokens: int, seed: int, epoch: int) -> Plan:
    """The batches of one epoch: rows are shuffled, sorted by length within large pools, and cut; batches are shuffled.

    A batch of n rows keeps n * max(longest source, longest target + 1) <= tokens; a longer example is a batch alone.
    """
    width = _widths(lengths)
    generator = np.random.default_rng((seed, epoch))
    rows = generator.permutation(len(width))
    pool = max(int(POOL_BATCHES * tokens / max(width.mean(), 1)), 1) if len(width) else 1
    pools = np.arange(len(rows)) // pool
    # Rows of one width are sorted by how much longer their source is, so that neither side is padded. With jitter: a
    # small corpus would have the same batches in every epoch otherwise.
    longer = lengths[rows, 0].astype(np.int64) - lengths[rows, 1] + generator.uniform(0, JITTER, len(rows))
    rows = rows[np.lexsort((longer, width[rows], pools))]
    # The first of many batches is filled in part only, so that all others begin elsewhere in each epoch.
    share = generator.uniform(0.2, 1) if width.sum() > 10 * tokens else 1.0
    offsets = _cuts(width[rows], tokens, np.flatnonzero(np.diff(pools)) + 1, share)
    return Plan(rows, generator.permutation(offsets))


def plan_short(lengths: np.ndarray, longest: int, tokens: int, seed: int, epoch: int) -> Plan:
    """The batches of an epoch of as many batches, made of rows whose target is no longer; these may come repeatedly."""
    rows = np.flatnonzero(lengths[:, 1] <= longest)
    if not len(rows):
        least = f"the shortest has {int(lengths[:, 1].min()):,}"
        raise SeqloomError(f"task.curriculum: no target has {longest:,} tokens or fewer; {least}")
    count, batches, again = len(plan(lengths, tokens, seed, epoch)), list[np.ndarray](), 0
    while len(batches) < count:
        again += 1
        part = plan(lengths[rows], tokens, seed, epoch * ROUNDS + again)
        batches += [rows[part[number]] for number in range(len(part))]
    return join_batches(batches[:count])


def join_batches(batches: list[np.ndarray]) -> Plan:
    """Batches, each the numbers of its rows, as a plan."""
    bounds = np.cumsum([0, *map(len, batches)])
    return Plan(np.concatenate(batches), np.stack([bounds[:-1], bounds[1:]], axis=1))


def in_order(lengths: np.ndarray, tokens: int) -> Plan:
    """The batches of validation and prediction: sorted by length, nothing shuffled."""
    width = _widths(lengths)
    rows = np.lexsort((lengths[:, 1], lengths[:, 0], width))
    return Plan(rows, _cuts(width[rows], tokens, np.empty(0, dtype=np.int64)))


def columns_of_text(total: int, window: int, columns: int, groups: int = 1, shift: int = 0) -> Plan:
    """A text of `total` tokens, cut into columns that are read side by side, one window at a time.

    Batches alternate between groups of columns, so that each of several processes keeps its own. The rest, less than
    one token per column, is not read.
    """
    if total - shift < groups:
        raise SeqloomError(f"the text has {total:,} tokens, too few for {groups} micro-batches: lower train.accumulate")
    columns = max(min(columns, (total - shift) // (groups * window)), 1)
    height = (total - shift) // (columns * groups)
    tops = shift + height * np.arange(groups * columns).reshape(groups, columns)
    depths = np.arange(0, height, window)
    begins = (depths[:, None, None] + tops).reshape(-1, columns)  # (batches, columns)
    widths = np.repeat(np.minimum(window, height - depths), groups)
    rows = np.stack([begins, begins + widths[:, None]], axis=-1).reshape(-1, 2)
    bounds = columns * np.arange(len(begins) + 1)
    return Plan(rows, np.stack([bounds[:-1], bounds[1:]], axis=1), stride=groups)


def windows_of_text(total: int, window: int, columns: int, shuffle: tuple[int, int] | None = None) -> Plan:
    """A text cut into windows that are independent of each other; (seed, epoch) shuffle them and shift the cuts."""
    generator = None if shuffle is None else np.random.default_rng(shuffle)
    cuts = np.arange(0, total, window)
    if generator is not None and total > window:
        cuts = np.unique(np.concatenate([[0], np.arange(generator.integers(1, window + 1), total, window)]))
    rows = np.stack([cuts, np.append(cuts[1:], total)], axis=1)  # (N, 2)
    if generator is not None:
        rows = generator.permutation(rows)
    bounds = np.append(np.arange(0, len(rows), max(columns, 1)), len(rows))
    return Plan(rows, np.stack([bounds[:-1], bounds[1:]], axis=1))


def _widths(lengths: np.ndarray) -> np.ndarray:
    """The longer side of each row; a target has BOS or EOS, too.  (N, 2) -> (N,)"""
    return np.maximum(lengths[:, 0], lengths[:, 1].astype(np.int64) + 1)


def _cuts(width: np.ndarray, tokens: int, borders: np.ndarray, share: float = 1.0) -> np.ndarray:
    """Fill batches one by one, the first to a share; widths ascend between two borders.  (N,) -> (n, 2)"""
    offsets: list[int] = [0] if len(width) else []
    counts = np.arange(1, tokens + 1)
    begin = 0
    for end in [*borders.tolist(), len(width)]:
        while begin < end:
            fitting = width[begin : min(begin + max(tokens // int(width[begin]), 1), end)]
            # rows * width ascends with every row: those that fit come first
            count = int(np.count_nonzero(counts[: len(fitting)] * fitting <= tokens))
            begin += max(count if begin else int(share * count), 1)
            offsets.append(begin)
    bounds = np.array(offsets, dtype=np.int64)
    return np.stack([bounds[:-1], bounds[1:]], axis=1)
