"""How many updates a training has, and what is laid out over them: learning rate, validations, the end.

Learning rate schedules are factors of the highest learning rate; the first step is 1.
Inverse square root: Vaswani et al. 2017, eq. 3, scaled to reach 1 at the end of the warm-up.
Cosine: Loshchilov & Hutter 2017, without restarts. Halving on a plateau: Luong et al. 2015.
Halving after each quarter of the training: Sukhbaatar et al. 2015, section 4.2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from seqloom.config.settings import Schedule, Settings
from seqloom.train.batches import Batches
from seqloom.train.state import TrainingState


def warm_up(step: int, warmup: int) -> float:
    """Linear from 1/warmup to 1."""
    return min(step / warmup, 1.0) if warmup else 1.0


def rsqrt(step: int, warmup: int) -> float:
    """Linear warm-up, then proportional to 1/sqrt(step)."""
    return warm_up(step, warmup) * math.sqrt(max(warmup, 1) / max(step, warmup, 1))


def cosine(step: int, warmup: int, progress: float) -> float:
    """Half a cosine from 1 to 0 over the training. Progress, not a step count: it also fits a limit in minutes."""
    return warm_up(step, warmup) * 0.5 * (1.0 + math.cos(math.pi * progress))


def factor(schedule: Schedule, *, step: int, warmup: int, progress: float, halvings: int) -> float:
    """A pure function of the training state; `halvings` counts validations without gain."""
    if schedule == "rsqrt":
        return rsqrt(step, warmup)
    if schedule == "cosine":
        return cosine(step, warmup, progress)
    if schedule == "plateau":
        return warm_up(step, warmup) * 0.5**halvings
    if schedule == "quarters":
        return warm_up(step, warmup) * 0.5 ** min(int(4 * progress), 3)
    return warm_up(step, warmup)


@dataclass(frozen=True)
class TrainingSchedule:
    """The only place that knows how long a training lasts."""

    settings: Settings
    state: TrainingState
    batches: Batches

    def total_updates(self) -> int | None:
        """How many updates there will be at most; None if only a limit in minutes ends the training."""
        settings, limits = self.settings, []
        if settings.epoch_limit is not None:
            updates = math.ceil(len(self.batches.plan_of(0)) / settings.accumulate)
            limits.append(math.ceil(settings.epoch_limit * updates))
        if settings.steps is not None:
            limits.append(settings.steps)
        return min(limits, default=None)

    def progress(self) -> float:
        """The share of the training that is over, from 0 to 1."""
        state = self.state
        return self.settings.progress(step=state.step, epochs=self.batches.epochs, seconds=state.seconds)

    def learning_rate(self, progress: float) -> float:
        settings, state = self.settings, self.state
        return settings.learning_rate * factor(
            settings.schedule, step=state.step, warmup=settings.warmup, progress=progress, halvings=state.halvings
        )

    def validation_is_due(self) -> bool:
        every = self.settings.validate_every
        return self.state.step % every == 0 if every else self.state.batch == 0

    def checkpoint_is_due(self) -> bool:
        every = self.settings.checkpoint_every
        return every > 0 and self.state.step % every == 0

    def reason_to_stop(self) -> str:
        """The limit that is reached, if one is."""
        settings, state = self.settings, self.state
        if settings.patience and state.stale >= settings.patience:
            return "patience"
        if settings.steps is not None and state.step >= settings.steps:
            return "steps"
        if settings.epoch_limit is not None and self.batches.epochs >= settings.epoch_limit:
            return "epochs"
        if settings.minutes is not None and state.seconds >= settings.minutes * 60:
            return "minutes"
        return ""
