"""Copy recall: the words shared by reference and source that are also in the prediction, in percent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence

HIGHER_IS_BETTER = True


def copy_recall(
    predictions: list[str], references: list[list[str]], sources: Sequence[str], known: Container[str] = ()
) -> dict[str, float]:
    """Against the reference that shares most words with the source. Words are separated by white space.

    Words that are `known` do not count. Where there is nothing to copy it is 100.
    """
    copied = wanted = 0
    for prediction, expected, source in zip(predictions, references, sources, strict=True):
        copyable = {word for word in source.split() if word not in known}
        shared = [Counter(word for word in each.split() if word in copyable) for each in expected]
        most = max(shared, key=Counter.total, default=Counter())
        copied += (most & Counter(prediction.split())).total()
        wanted += most.total()
    return {"copy_recall": 100 * copied / wanted if wanted else 100.0}
