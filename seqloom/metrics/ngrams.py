"""Counts of n-grams in predictions and in their references, for many pairs at once.

Tokens become integers, n-grams pairs of integers, and numpy sorts and counts them: no loop over tokens.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count

import numpy as np

Sequences = Sequence[Sequence[Hashable]]


@dataclass(frozen=True)
class Counts:
    """The counts of all K different n-grams of all pairs."""

    pairs: np.ndarray  # (K,): which pair each belongs to
    found: np.ndarray  # (K,): how often it is in the prediction
    expected: np.ndarray  # (K,): in the reference

    def sums(self, values: np.ndarray, pairs: int) -> np.ndarray:
        """Over the n-grams of each pair.  (K,) -> (pairs,), float64"""
        return np.bincount(self.pairs, values.astype(np.float64), minlength=pairs)


def lengths_of(sequences: Sequences) -> np.ndarray:
    """(N,)"""
    return np.fromiter(map(len, sequences), np.int64, len(sequences))


def ngram_counts(predictions: Sequences, references: Sequences, longest: int) -> Iterator[Counts]:
    """The counts of unigrams, of bigrams, and so on."""
    if len(predictions) != len(references):
        raise ValueError(f"{len(predictions)} predictions but {len(references)} references, expected as many")
    sequences = [*predictions, *references]
    lengths = lengths_of(sequences)  # (2N,)
    numbers: defaultdict[Hashable, int] = defaultdict(count().__next__)
    tokens = np.fromiter(map(numbers.__getitem__, chain.from_iterable(sequences)), np.int64, lengths.sum())  # (S,)
    rows = np.repeat(np.arange(len(sequences)), lengths)  # (S,)
    left = np.repeat(np.cumsum(lengths), lengths) - np.arange(len(tokens))  # (S,): tokens from here to the end
    pairs, is_found = rows % max(len(predictions), 1), rows < len(predictions)
    begins, grams = np.arange(len(tokens)), pairs  # where n-grams begin; equal numbers are equal n-grams of one pair
    for order in range(1, longest + 1):
        fits = left[begins] >= order
        begins, grams = begins[fits], grams[fits]
        longer = grams * max(len(numbers), 1) + tokens[begins + order - 1]
        _, first, grams = np.unique(longer, return_index=True, return_inverse=True)
        side = is_found[begins]
        found, expected = (np.bincount(grams[chosen], minlength=len(first)) for chosen in (side, ~side))
        yield Counts(pairs[begins[first]], found, expected)
