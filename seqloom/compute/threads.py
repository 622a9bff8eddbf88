"""CPU threads: their number is measured, not taken from the number of processors.

On a busy machine, or in a container that has a share of one, two threads may be slower than one.
"""

from __future__ import annotations

import os
import statistics
import time

import torch

from seqloom.compute.processors import available_processors, check_threads

ROUNDS = 3
GAIN = 1.15  # how much faster twice the threads must be


def choose_threads(wanted: int = 0, before: int = 0) -> int:
    """Set the threads of torch: as wanted, else as before, else from OMP_NUM_THREADS, else measured."""
    count = check_threads(wanted or before)
    if not count and "OMP_NUM_THREADS" in os.environ:
        return torch.get_num_threads()
    torch.set_num_threads(count or fastest_count(available_processors()))
    return torch.get_num_threads()


def fastest_count(most: int) -> int:
    """The fastest of 1, 2, 4, ... threads, measured in a few hundredths of a second."""
    counts = [1]
    while 2 * counts[-1] <= most:
        counts.append(2 * counts[-1])
    spent: dict[int, list[float]] = {count: [] for count in counts}
    for turn in range(ROUNDS + 1):
        for count in counts if len(counts) > 1 else ():
            seconds = seconds_with(count)
            if turn:  # the first round starts the threads
                spent[count].append(seconds)
    best = 1
    for count in counts[1:]:
        if statistics.median(spent[count]) * GAIN < statistics.median(spent[best]):
            best = count
    return best


def seconds_with(threads: int) -> float:
    """The time of a few matrix products of the size that small models have."""
    torch.set_num_threads(threads)
    inputs, weight = torch.ones(512, 256), torch.ones(256, 1024)
    begin = time.perf_counter()
    for _ in range(4):
        torch.relu(inputs @ weight) @ weight.t()
    return time.perf_counter() - begin
