"""Outputs drawn near a target: first the number of edits, then the edits.

Norouzi et al. 2016, section 2.2 and appendix. An output that is e edits away is drawn with weight exp(-e / tau). Far
outputs are so many that a temperature which suits one vocabulary is noise in another; calibrated, as in the authors'
program, the temperature also divides the logarithm of the vocabulary size: exp(-e (1 + log V) / tau).
Everything is numpy, all rows at once. Edits insert only real tokens: not padding, BOS, EOS or unknown.
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
NEGLIGIBLE = 1e-18  # numbers of edits that are less likely are left out


@dataclass(frozen=True)
class Hamming:
    """Substitutions only, each by a different token: q(y) is exactly exp(-e cost) / Z.

    P(e) = C(m, e) (V - 1)^e exp(-e cost) / Z for a target of m tokens and a vocabulary of V real tokens.
    """

    vocabulary: int  # V: real tokens, without the special ones
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
        is_real = old >= FIRST  # an unknown token has V possible substitutes, others V - 1
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
    """Substitutions and insertions as the authors count them: no deletions, at most 2 m edits.

    A script substitutes n of m tokens and inserts e - n among those that stay: there are
    C(m, n) C(m + e - 2n, e - n) V^e scripts of e edits, all equally likely. Several may give the same output, and a
    substitute may be the same token, so that an output's Levenshtein distance may be less than e.
    """

    vocabulary: int  # V: real tokens, without the special ones
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
        """One output for each row, longer by its insertions.  (N, T) -> (N, up to 3 T)"""
        values, lengths = targets.values, targets.lengths
        width = values.shape[1]
        numbers = draw_counts(lambda length: edit_chances(length, self.vocabulary, self.cost)[2], lengths, chance)
        pairs = [edit_chances(int(m), self.vocabulary, self.cost)[:2] for m in lengths]
        substituted, inserted = np.array([[n[s], k[s]] for (n, k), s in zip(pairs, numbers)]).T.reshape(2, -1)
        chosen = random_positions(substituted, lengths, width, chance)  # (N, T)
        values = np.where(chosen, self.random_tokens(chosen.shape, chance), values)

        # Each slot is a token that stays or one that is inserted. An insertion after g tokens that stay is in gap g.
        slots = lengths - substituted + inserted
        comes = random_positions(inserted, slots, int(slots.max(initial=0)), chance)  # (N, S)
        gaps = np.cumsum(~comes, 1)
        stays = targets.mask & ~chosen
        before = np.cumsum(stays, 1) - stays  # (N, T)

        # The order: substitutes in gap 0, insertions in gap 0, the first token that stays, and so on.
        last = 2 * width + 2
        sort_keys = np.where(targets.mask, 2 * before + stays, last), np.where(comes, 2 * gaps, last)
        order = np.argsort(np.concat(sort_keys, 1), axis=1, kind="stable")
        new = np.concat([values, self.random_tokens(comes.shape, chance)], 1)
        longer = lengths + inserted
        outputs = np.take_along_axis(new, order, 1)[:, : int(longer.max(initial=0))]
        return Padded(np.where(positions_below(longer, outputs.shape[1]), outputs, PAD), longer)

    def random_tokens(self, shape: tuple[int, ...], chance: np.random.Generator) -> np.ndarray:
        return chance.integers(FIRST, FIRST + self.vocabulary, shape)

    def log_probs(self, targets: Padded, outputs: Padded) -> np.ndarray:
        """log q of outputs, summed over all scripts that give them.  (N,)"""
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
    """How many scripts give each output, by the number of substitutions.  (n, m), (n, U), (n,) -> (n, m + 1)

    Each token of an output was inserted, substituted, or stays. Within a gap, substitutes come before insertions, so
    that each script is counted once.
    """
    rows, length = targets.shape
    # Scripts that end in an insertion, and others: by target tokens read, and by substitutions.
    inserted = np.zeros((rows, length + 1, length + 1))
    otherwise = np.zeros_like(inserted)
    otherwise[:, 0, 0] = 1
    ways = np.where(lengths[:, None] == 0, otherwise[:, length], 0.0)
    for position in range(int(lengths.max())):
        both = inserted + otherwise
        same = targets == outputs[:, position, None]  # (n, m)
        moved = np.zeros_like(both)
        moved[:, 1:, 1:] = otherwise[:, :-1, :-1]
        moved[:, 1:] += both[:, :-1] * same[:, :, None]
        inserted, otherwise = both, moved
        ways = np.where(lengths[:, None] == position + 1, inserted[:, length] + otherwise[:, length], ways)
    return ways


@cache
def hamming_chances(length: int, vocabulary: int, cost: float) -> tuple[np.ndarray, float]:
    """The probability of each number of substitutions, and log Z."""
    edits = np.arange(length + 1)
    return normalise(log_choose(length, edits) + edits * (log(vocabulary - 1) - cost))


@cache
def edit_chances(length: int, vocabulary: int, cost: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Numbers of substitutions and of insertions, the probability of each pair, and log Z."""
    substituted, inserted = np.arange(length + 1)[:, None], np.arange(2 * length + 1)
    edits = substituted + inserted
    ways = log_choose(length, substituted) + log_choose(length - substituted + inserted, inserted)
    chances, norm = normalise(np.where(edits <= 2 * length, ways + edits * (log(vocabulary) - cost), -np.inf))
    few, many = np.nonzero(chances > NEGLIGIBLE)
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
    """log n! for n = 0, 1, .. up to the largest."""
    return np.concat([[0.0], np.cumsum(np.log(np.arange(1, largest + 1)))])


def draw_counts(chances: Callable[[int], np.ndarray], lengths: np.ndarray, chance: np.random.Generator) -> np.ndarray:
    """A random number for each row, with the probabilities of its length.  (N,)"""
    numbers = np.zeros(len(lengths), dtype=np.int64)
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        likely = chances(int(length))
        numbers[rows] = chance.choice(len(likely), len(rows), p=likely / likely.sum())
    return numbers


def random_positions(numbers: np.ndarray, lengths: np.ndarray, width: int, chance: np.random.Generator) -> np.ndarray:
    """True at random positions of each row, `numbers` of them within its length.  (N,), (N,) -> (N, width)"""
    lots = np.where(positions_below(lengths, width), chance.random((len(lengths), width)), 2.0)
    ranks = np.argsort(np.argsort(lots, axis=1), axis=1)
    return ranks < numbers[:, None]
