"""Latency: how far writing lags behind reading. g(t) is how many inputs had been read when output t was written.

average proportion   1 / (|x| |y|) sum_t g(t)                    Cho & Esipova 2016: 1 if all was read first
average lagging      1 / tau sum_(t <= tau) g(t) - (t - 1) / r   Ma et al. 2019, eq. 8: inputs behind an ideal
                     writer with the pace r = |y| / |x|; tau is the first t with everything read
consecutive wait     inputs read between two outputs, where any were (Gu et al. 2017)
mean delay           inputs read before an output is written
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from seqloom.errors import SeqloomError

Times = Sequence[float]


def latency(times: Sequence[Times], lengths: Sequence[int]) -> dict[str, float]:
    """Means over outputs, given g of each and the length of its source; empty outputs do not count."""
    if len(times) != len(lengths):
        raise SeqloomError(f"latency: {len(times):,} outputs but {len(lengths):,} sources; expected as many")
    for written, length in zip(times, lengths):
        if any(after < before for before, after in pairwise(written)):
            raise SeqloomError(f"latency: times {list(written)} go back; expected inputs read so far")
        if written and not 0 <= written[0] <= written[-1] <= length:
            raise SeqloomError(f"latency: times {list(written)} of a source of {length}; expected 0 to {length}")
    pairs = [(written, length) for written, length in zip(times, lengths) if written and length]
    measures = {
        "average_proportion": average_proportion,
        "average_lagging": average_lagging,
        "consecutive_wait": consecutive_wait,
        "mean_delay": mean_delay,
    }
    return {name: sum(of(*pair) for pair in pairs) / len(pairs) for name, of in measures.items()} if pairs else {}


def average_proportion(times: Times, length: int) -> float:
    return sum(times) / (length * len(times))


def average_lagging(times: Times, length: int) -> float:
    pace = len(times) / length
    counted = next((place for place, time in enumerate(times, start=1) if time >= length), len(times))
    return sum(time - place / pace for place, time in enumerate(times[:counted])) / counted


def consecutive_wait(times: Times, length: int) -> float:
    waits = [after - before for before, after in zip([0, *times], times)]
    return sum(waits) / max(sum(wait > 0 for wait in waits), 1)


def mean_delay(times: Times, length: int) -> float:
    return sum(times) / len(times)
