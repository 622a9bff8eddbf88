"""How much of an output is certain while its source is still coming: what all hypotheses have in common."""

from collections.abc import Iterable, Sequence


def split_certain(
    best: Sequence[int], others: Iterable[Sequence[int]], times: Sequence[int]
) -> tuple[list[int], list[int], list[int]]:
    """The best hypothesis, split after the beginning that it shares with all others, and its times."""
    count = len(best)
    for other in others:
        if (shared := min(count, len(other))) == len(best) and best == other[:shared]:
            continue
        differs = (place for place, (one, two) in enumerate(zip(best, other)) if one != two)
        count = min(count, next(differs, min(count, len(other))))
    return list(best[:count]), list(best[count:]), list(times)
