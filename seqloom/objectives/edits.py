"""Outputs drawn near a target: first how many edits, then which.

Norouzi et al. 2016, section 2.2 and appendix. An output that is e edits away is drawn with weight exp(-e / tau). There
are so many far outputs that a temperature which suits one vocabulary is noise in another; calibrated, as the authors'
program has it, the temperature divides the logarithm of the number of tokens as well: exp(-e (1 + log V) / tau).
Everything is numpy, all rows at once. Edits put real tokens only: not padding, begin, end or unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import log

import numpy as np

from seqloom.data.special_tokens import PAD, SPECIAL
from seqloom.types import Padded, positions_below

FIRST = len(SPECIAL)  # the first real token
NEVER = 1e-18  # a probability too small to be drawn, or to be kept


@dataclass(frozen=True)
class Hamming:
    """Substitutions alone, each by another token: q(y) is exactly exp(-e cost) / Z.

    P(e) = C(m, e) (V - 1)^e exp(-e cost) / Z for m tokens of a target and a vocabulary of V real ones.
    """

    vocabulary: int  # V
    temperature: float
    calibrated: bool = True

    @property
    def cost(self) -> float:
        """Of one edit, in nats."""
        return (1 + log(self.vocabulary - 1) * self.calibrated) / self.temperature

    def chances(self, length: int) -> np.ndarray:
        """P(e).  (m + 1,)"""
        return hamming_chances(length, self.vocabulary, self.cost)[0]

    def draw(self, targets: Padded, chance: np.random.Generator) -> Padded:
        """One output for each row.  (N, T)"""
        values, lengths = targets.values, targets.lengths
        edits = draw_counts(self.chances, lengths, chance)  # (N,)
        chosen = random_positions(edits, lengths, values.shape[1], chance)  # (N, T)
        old = values[chosen]
        is_real = old >= FIRST  # an unknown token has one neighbour more
        new = FIRST + chance.integers(0, self.vocabulary - is_real)
        values = values.copy()
        values[chosen] = new + (is_real & (new >= old))
        return Padded(values, lengths)

    def log_probs(self, targets: Padded, outputs: Padded) -> np.ndarray:
        """log q of outputs that may have been drawn.  (N,)"""
        edited = (targets.values != outputs.values) & targets.mask  # (N, T)
        ways = np.where(edited, np.log(self.vocabulary - (targets.values >= FIRST)), 0.0).sum(1)
        norms = np.array([hamming_chances(int(m), self.vocabulary, self.cost)[1] for m in targets.lengths])
        return edited.sum(1) * (log(self.vocabulary - 1) - self.cost) - ways - norms


@dataclass(frozen=True)
class Edit:
    """Substitutions and insertions as the authors count them, without deletions and up to 2 m of them.

    A script substitutes n of m tokens and inserts e - n among those that stay: there are
    C(m, n) C(m + e - 2n, e - n) V^e of e edits, all equally likely. Several lead to one output, and a substitute may be
    the same token: edits are over-counted, and by Levenshtein's distance an output may be nearer than e.
    """

    vocabulary: int  # V
    temperature: float
    calibrated: bool = True

    @property
    def cost(self) -> float:
        """Of one edit, in nats."""
        return (1 + log(self.vocabulary) * self.calibrated) / self.temperature

    def chances(self, length: int) -> np.ndarray:
        """P(e).  (2 m + 1,)"""
        substituted, inserted, chances, _ = edit_chances(length, self.vocabulary, self.cost)
        return np.bincount(substituted + inserted, chances, minlength=2 * length + 1)

    def draw(self, targets: Padded, chance: np.random.Generator) -> Padded:
        """One output for each row, longer by what was inserted.  (N, T) -> (N, up to 3 T)"""
        values, lengths = targets.values, targets.lengths
        width = values.shape[1]
        numbers = draw_counts(lambda length: edit_chances(length, self.vocabulary, self.cost)[2], lengths, chance)
        pairs = [edit_chances(int(m), self.vocabulary, self.cost)[:2] for m in lengths]
        substituted, inserted = np.array([[n[s], k[s]] for (n, k), s in zip(pairs, numbers)]).T.reshape(2, -1)
        chosen = random_positions(substituted, lengths, width, chance)  # (N, T)
        values = np.where(chosen, self.random_tokens(chosen.shape, chance), values)

        # Insertions are some of as many slots as tokens stay or come in. One before which g tokens stay is in gap g.
        slots = lengths - substituted + inserted
        comes = random_positions(inserted, slots, int(slots.max(initial=0)), chance)  # (N, S)
        gaps = np.cumsum(~comes, 1)
        stays = targets.mask & ~chosen
        before = np.cumsum(stays, 1) - stays  # (N, T)

        # In order: what was substituted in gap 0, what was inserted there, the first that stays, and so on.
        last = 2 * width + 2
        places = np.where(targets.mask, 2 * before + stays, last), np.where(comes, 2 * gaps, last)
        order = np.argsort(np.concat(places, 1), axis=1, kind="stable")
        new = np.concat([values, self.random_tokens(comes.shape, chance)], 1)
        longer = lengths + inserted
        outputs = np.take_along_axis(new, order, 1)[:, : int(longer.max(initial=0))]
        return Padded(np.where(positions_below(longer, outputs.shape[1]), outputs, PAD), longer)

    def random_tokens(self, shape: tuple[int, ...], chance: np.random.Generator) -> np.ndarray:
        return chance.integers(FIRST, FIRST + self.vocabulary, shape)

    def log_probs(self, targets: Padded, outputs: Padded) -> np.ndarray:
        """log q of outputs, all scripts that lead to them summed up.  (N,)"""
        log_probs = np.empty(len(targets.lengths))
        for length in np.unique(targets.lengths):
            rows = np.flatnonzero(targets.lengths == length)
            edits = np.arange(length + 1) + outputs.lengths[rows, None] - length  # (n, m + 1), by substitutions
            ways = count_scripts(targets.values[rows, :length], outputs.values[rows], outputs.lengths[rows])
            with np.errstate(divide="ignore"):
                weights = np.log(np.where(edits <= 2 * length, ways, 0.0)) - edits * self.cost
            norm = edit_chances(int(length), self.vocabulary, self.cost)[3]
            log_probs[rows] = np.logaddexp.reduce(weights, axis=1) - norm
        return log_probs


def count_scripts(targets: np.ndarray, outputs: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """How many scripts lead to each output, by the number of substitutions.  (n, m), (n, U), (n,) -> (n, m + 1)

    Each token of an output was inserted, substituted, or stays. Within a gap nothing is substituted after an
    insertion, so that each script is counted once.
    """
    rows, length = targets.shape
    inserted = np.zeros((rows, length + 1, length + 1))  # ending so: by tokens of the target read, and substituted
    otherwise = np.zeros_like(inserted)
    otherwise[:, 0, 0] = 1
    ways = np.where(lengths[:, None] == 0, otherwise[:, length], 0.0)
    for place in range(int(lengths.max())):
        both = inserted + otherwise
        same = targets == outputs[:, place, None]  # (n, m)
        moved = np.zeros_like(both)
        moved[:, 1:, 1:] = otherwise[:, :-1, :-1]
        moved[:, 1:] += both[:, :-1] * same[:, :, None]
        inserted, otherwise = both, moved
        ways = np.where(lengths[:, None] == place + 1, inserted[:, length] + otherwise[:, length], ways)
    return ways


@cache
def hamming_chances(length: int, vocabulary: int, cost: float) -> tuple[np.ndarray, float]:
    """How likely each number of substitutions is, and log Z."""
    edits = np.arange(length + 1)
    return normalise(log_choose(length, edits) + edits * (log(vocabulary - 1) - cost))


@cache
def edit_chances(length: int, vocabulary: int, cost: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Numbers of substitutions and insertions, how likely they are together, and log Z."""
    substituted, inserted = np.arange(length + 1)[:, None], np.arange(2 * length + 1)
    edits = substituted + inserted
    ways = log_choose(length, substituted) + log_choose(length - substituted + inserted, inserted)
    chances, norm = normalise(np.where(edits <= 2 * length, ways + edits * (log(vocabulary) - cost), -np.inf))
    few, many = np.nonzero(chances > NEVER)
    return few, many, chances[few, many] / chances[few, many].sum(), norm


def normalise(log_weights: np.ndarray) -> tuple[np.ndarray, float]:
    """Weights as probabilities, and the logarithm of their sum."""
    norm = float(np.logaddexp.reduce(log_weights.ravel()))
    return np.exp(log_weights - norm), norm


def log_choose(all_of: np.ndarray | int, some_of: np.ndarray | int) -> np.ndarray:
    """log C(n, k)"""
    factorials = log_factorials(int(np.max(all_of)))
    return factorials[all_of] - factorials[some_of] - factorials[np.subtract(all_of, some_of)]


@cache
def log_factorials(largest: int) -> np.ndarray:
    """log n! of 0, 1, .. and at least the largest."""
    return np.concat([[0.0], np.cumsum(np.log(np.arange(1, largest + 1)))])


def draw_counts(chances: Callable[[int], np.ndarray], lengths: np.ndarray, chance: np.random.Generator) -> np.ndarray:
    """A number for each row, by the chances of its length.  (N,)"""
    numbers = np.zeros(len(lengths), dtype=np.int64)
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        likely = chances(int(length))
        numbers[rows] = chance.choice(len(likely), len(rows), p=likely / likely.sum())
    return numbers


def random_positions(numbers: np.ndarray, lengths: np.ndarray, width: int, chance: np.random.Generator) -> np.ndarray:
    """So many of the first positions of each row, all choices equally likely.  (N,), (N,) -> (N, width)"""
    lots = np.where(positions_below(lengths, width), chance.random((len(lengths), width)), 2.0)
    ranks = np.argsort(np.argsort(lots, axis=1), axis=1)
    return ranks < numbers[:, None]
