"""The mean of a reward over a corpus, in percent: how a reward becomes a metric."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np

from seqloom.metrics.check import check_pairs


def mean_reward(
    metric: str,
    rewards: Callable[[Sequence[Sequence[Hashable]], Sequence[Sequence[Hashable]]], np.ndarray],
    predictions: list[str],
    references: list[list[str]],
    tokens: Callable[[str], Sequence[str]],
) -> float:
    """With several references the best one counts."""
    check_pairs(metric, predictions, references)
    numbers = [len(choices) for choices in references]
    found = [read for text, number in zip(predictions, numbers) for read in [tokens(text)] * number]
    values = rewards(found, [tokens(choice) for choices in references for choice in choices])
    best = np.maximum.reduceat(values, np.cumsum([0, *numbers[:-1]]))  # (N,)
    return 100.0 * float(best.sum()) / len(predictions)
