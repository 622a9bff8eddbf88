"""Learning rate schedules: what the highest learning rate is multiplied by at a step (the first step is 1).

Inverse square root: Vaswani et al. 2017, eq. 3, scaled to reach 1 at the end of the warm-up.
Cosine: Loshchilov & Hutter 2017, without restarts. Halving on a plateau: Luong et al. 2015.
Halving after each quarter of the training: Sukhbaatar et al. 2015, section 4.2.
"""

from __future__ import annotations

import math

from seqloom.config.settings import Schedule


def warming(step: int, warmup: int) -> float:
    """Linear from 1/warmup to 1."""
    return min(step / warmup, 1.0) if warmup else 1.0


def rsqrt(step: int, warmup: int) -> float:
    """Linear warm-up, then proportional to 1/sqrt(step)."""
    return warming(step, warmup) * math.sqrt(max(warmup, 1) / max(step, warmup, 1))


def cosine(step: int, warmup: int, progress: float) -> float:
    """Half a cosine from 1 to 0 over the training. Progress, not a step count: it also fits a run bound by time."""
    return warming(step, warmup) * 0.5 * (1.0 + math.cos(math.pi * progress))


def factor(schedule: Schedule, *, step: int, warmup: int, progress: float, halvings: int) -> float:
    """A pure function of where training stands; `halvings` is how often a validation brought no gain."""
    if schedule == "rsqrt":
        return rsqrt(step, warmup)
    if schedule == "cosine":
        return cosine(step, warmup, progress)
    if schedule == "plateau":
        return warming(step, warmup) * 0.5**halvings
    if schedule == "quarters":
        return warming(step, warmup) * 0.5 ** min(int(4 * progress), 3)
    return warming(step, warmup)
