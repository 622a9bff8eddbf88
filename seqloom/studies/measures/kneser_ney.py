"""An n-gram model with interpolated Kneser-Ney smoothing: what a neural model of text must beat.

Kneser & Ney 1995, interpolated as in Chen & Goodman 1999, section 4.1.6. With c the count of an n-gram, of the highest
order, or the number of different tokens before it, of lower ones, and one discount D = n_1 / (n_1 + 2 n_2) per order,
    p(w | h) = max(c(h w) - D, 0) / c(h) + D N(h) / c(h) p(w | h')
where N(h) tokens follow h, and h' is h without its first token. Below unigrams all tokens are equally likely.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import log

from seqloom.data.special_tokens import BOS, EOS

Gram = tuple[int, ...]


class KneserNey:
    """Of sequences of tokens, each of which ends with EOS; `vocabulary` tokens may follow anything."""

    def __init__(self, *, order: int = 3, vocabulary: int):
        if order < 1 or vocabulary < 1:
            raise ValueError(f"order = {order} and vocabulary = {vocabulary} must be 1 or more")
        self.order, self.vocabulary = order, vocabulary
        self.counts: list[Counter[Gram]] = []  # of n-grams, from unigrams on
        self.totals: list[Counter[Gram]] = []  # of their histories
        self.kinds: list[Counter[Gram]] = []  # how many different tokens follow a history
        self.discounts: list[float] = []

    def fit(self, sequences: Iterable[Sequence[int]]) -> KneserNey:
        counts = Counter(gram for tokens in sequences for gram in self.grams(tokens))
        orders = [counts]
        for _ in range(self.order - 1):  # a lower order counts the different tokens before
            counts = Counter(gram[1:] for gram in counts)
            orders.append(counts)
        self.counts = orders[::-1]
        self.totals, self.kinds, self.discounts = [], [], []
        for counts in self.counts:
            totals: Counter[Gram] = Counter()
            for gram, count in counts.items():
                totals[gram[:-1]] += count
            self.totals.append(totals)
            self.kinds.append(Counter(gram[:-1] for gram in counts))
            once, twice = (sum(count == number for count in counts.values()) for number in (1, 2))
            self.discounts.append(once / (once + 2 * twice) if once and twice else 0.5)
        return self

    def grams(self, tokens: Sequence[int]) -> list[Gram]:
        """Each token and EOS after those before it, which begin with BOS."""
        padded = [BOS] * (self.order - 1) + [*tokens, EOS]
        return [tuple(padded[place : place + self.order]) for place in range(len(tokens) + 1)]

    def probability(self, gram: Gram) -> float:
        """Of the last token after the others."""
        found = 1 / self.vocabulary
        for length in range(1, len(gram) + 1):
            part = gram[-length:]
            total = self.totals[length - 1][part[:-1]]
            if not total:  # nor does a longer history occur
                return found
            discount = self.discounts[length - 1]
            kept = max(self.counts[length - 1][part] - discount, 0)
            found = (kept + discount * self.kinds[length - 1][part[:-1]] * found) / total
        return found

    def log_prob(self, tokens: Sequence[int]) -> float:
        """Of a sequence and its EOS."""
        return sum(log(self.probability(gram)) for gram in self.grams(tokens))
