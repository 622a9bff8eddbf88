"""How many updates a training has, and what is laid out over them: learning rate, validations, the end.

Learning rate schedules are factors of the highest learning rate; the first step is 1.
Inverse square root: Vaswani et al. 2017, eq. 3, scaled to reach 1 at the end of the warm-up.
Cosine: Loshchilov & Hutter 2017, without restarts. Halving on a plateau: Luong et al. 2015.
Halving after each quarter of the training: Sukhbaatar et al. 2015, section 4.2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from seqloom.config.budget import EPOCHS, RESERVE, last_validations
from seqloom.config.settings import Schedule, Settings
from seqloom.train.batches import Batches
from seqloom.train.state import TrainingState

CHECKS = 10  # of the time, in a training with a limit in minutes
TOLERANCE = 0.07  # of the minutes, by which the projected end may miss them


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

    @property
    def epochs(self) -> float | None:
        settings = self.settings
        no_limit = settings.epochs is None and settings.steps is None and settings.minutes is None
        return EPOCHS if no_limit else settings.epochs

    @property
    def steps(self) -> int | None:
        budget, steps = self.state.budget, self.settings.steps
        return budget.planned if budget and budget.planned and budget.instead_of == steps else steps

    def total_updates(self) -> int | None:
        """How many updates there will be at most; None if only a limit in minutes ends the training."""
        limits = [] if self.steps is None else [self.steps]
        if self.epochs is not None:
            updates = math.ceil(len(self.batches.plan_of(0)) / self.settings.accumulate)
            limits.append(math.ceil(self.epochs * updates))
        return min(limits, default=None)

    def progress(self) -> float:
        """The share of the training that is over, from 0 to 1: the limit that is nearest decides.

        Where minutes were turned into steps, time does not count: the learning rate is a function of the step.
        """
        minutes = self.settings.minutes if self.steps is None else None
        done = ((self.state.step, self.steps), (self.batches.epochs, self.epochs), (self.elapsed() / 60, minutes))
        return min(max(value / limit for value, limit in done if limit is not None), 1.0)

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
        if self.steps is not None and state.step >= self.steps:
            return "steps"
        if self.epochs is not None and self.batches.epochs >= self.epochs:
            return "epochs"
        if settings.minutes is not None and self.elapsed() + self.reserve() >= settings.minutes * 60:
            return "minutes"
        return ""

    def elapsed(self) -> float:
        """Seconds of the minutes that are spent, those before the first update included."""
        return self.state.seconds + (self.state.budget.preparation if self.state.budget else 0.0)

    def reserve(self) -> float:
        """Seconds for what follows the last update: a validation, and that of an average of checkpoints."""
        budget = self.state.budget
        return last_validations(self.settings.average) * budget.validation if budget else 0.0

    def keep_to_time(self) -> str:
        """Ten times in a training: if it would miss its minutes by far, change the number of updates, and say so.

        At the speed that was measured nothing changes, so that such a training resumes like any other.
        """
        state, budget, minutes, steps = self.state, self.state.budget, self.settings.minutes, self.steps
        if minutes is None or steps is None or budget is None or state.step < 3:
            return ""
        if budget.minutes != minutes:  # resumed with others
            budget.minutes, budget.step, budget.seconds = minutes, 0, 0.0
        elif state.step % max(steps // CHECKS, 1) or state.step == budget.step:
            return ""
        updating = state.seconds - budget.validating
        pace = (updating - budget.seconds) / (state.step - budget.step)  # of the updates since the last check
        budget.step, budget.seconds = state.step, updating
        every = self.settings.validate_every or math.ceil(len(self.batches.plan) / self.settings.accumulate)
        validations = (steps - 1) // every - state.step // every  # but for the last one, for which time is reserved
        left = minutes * 60 - self.elapsed() - self.reserve() - max(validations, 0) * budget.validation
        projected = pace * max(steps - state.step, 0)
        if abs(projected - left) <= TOLERANCE * minutes * 60:
            return ""
        affordable = state.step + max(int(left * (1 - RESERVE) / pace), 0)
        planned = min(affordable, max(budget.longest, steps))
        if abs(planned - steps) <= TOLERANCE * steps:
            return ""
        budget.planned, budget.instead_of = planned, self.settings.steps or 0
        speed = "slower" if planned < steps else "faster"
        return f"Training is {speed} than measured: {planned:,} updates instead of {steps:,} in {minutes:g} minutes."
