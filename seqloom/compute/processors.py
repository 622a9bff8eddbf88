"""How many processors there are, and how many threads may be asked for. There is no torch here."""

from __future__ import annotations

import os

from seqloom.errors import SeqloomError, shown

FEWEST = 64  # threads that may be asked for on any machine


def available_processors() -> int:
    """Those that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def most_threads() -> int:
    """How many may be asked for: starting a hundred thousand would end the process."""
    return max(4 * available_processors(), FEWEST)


def check_threads(count: int) -> int:
    """A number of threads that can be started."""
    if not 0 <= count <= most_threads():
        have = f"this machine has {available_processors()} processors"
        raise SeqloomError(f"threads = {shown(count)}: expected a number from 0 to {most_threads()}; {have}")
    return count
