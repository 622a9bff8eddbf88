"""Under-trained or over-trained: what the losses of both sets say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from seqloom import metrics
from seqloom.analysis.diagnosis.commands import Commands
from seqloom.analysis.diagnosis.finding import Finding, percent
from seqloom.storage.history import Curve, History
from seqloom.train.divergence import start_loss

LAST = 0.2  # the last fifth of a training says whether it has come to rest
FALLING = 0.03  # a training at rest gains less than three per cent in its last fifth, even where the rate falls to 0
REST = 0.01  # of the first loss: below a hundredth, there is little left to learn
LEARNED = 0.05  # a validation loss so low leaves nothing to gain
EARLY = 0.75  # a best validation before three quarters of the training leaves time to overfit
NOTICEABLE = 0.05  # validations differ by a few per cent by chance


@dataclass(frozen=True)
class Curves:
    """Losses over updates, those of training without label smoothing."""

    updates: int
    start: float | None  # the validation loss before the first update, where it was measured
    train: Curve
    valid: Curve
    best: int | None  # the step whose weights were selected; None before the first validation

    @classmethod
    def read(cls, history: History) -> Curves:
        by = history.recipe.get("train", {}).get("select_by") or "loss"
        known = by in (*metrics.LOSSES, *metrics.names())
        sign = 1.0 if known and metrics.higher_is_better(by) else -1.0
        best = history.best(by if known else "loss", sign)
        return cls(
            max((line["step"] for line in history.lines), default=0),
            start_loss(history.lines),
            history.curve("train", "loss", "step") if is_comparable(history) else (np.empty(0), np.empty(0)),
            history.curve("valid", "loss", "step"),
            best.get("step"),
        )

    def figures(self) -> dict[str, Any]:
        steps, losses = self.valid
        found: dict[str, Any] = {"updates": self.updates, "first_validation_loss": self.start}
        found |= {"best_step": self.best, "validations": len(steps)}
        found["validation_loss_at_best"] = self.valid_at_best()
        found["last_validation_loss"] = float(losses[-1]) if len(losses) else None
        found["last_training_loss"] = mean_between(self.train, 1 - LAST, 1.0, self.updates)
        return found

    def valid_at_best(self) -> float | None:
        steps, losses = self.valid
        found = losses[steps == self.best] if self.best is not None else losses[:0]
        return float(found[-1]) if len(found) else None


def is_comparable(history: History) -> bool:
    """Whether training and validation measure the same: rewards and margins are no likelihoods."""
    squared = history.recipe.get("objective", {}).get("type") == "squared_error"
    return squared or any("nll" in line for line in history.lines if line["kind"] == "train")


def under_trained(curves: Curves, commands: Commands) -> Finding | None:
    """The loss still falls at the end: that of validation or, with too few validations, that of training."""
    name, before, after = "validation", *lowest(curves.valid, (1 - LAST) * curves.updates)
    if before is None or after is None:
        name = "training"
        before = mean_between(curves.train, 1 - 2 * LAST, 1 - LAST, curves.updates)
        after = mean_between(curves.train, 1 - LAST, 1.0, curves.updates)
    if before is None or after is None or after > (1 - FALLING) * before or after <= REST * (curves.start or 0.0):
        return None
    gain = f"{percent(1 - after / before)} ({before:.3g} to {after:.3g})"
    return Finding(
        "under-trained",
        "problem",
        f"Under-trained: in the last fifth of {curves.updates:,} updates the {name} loss still fell by {gain}.",
        "Train longer.",
        commands.longer(),
    )


def over_trained(curves: Curves, commands: Commands) -> Finding | None:
    """The training loss falls on, while that of validation was best long ago and has risen since."""
    best, (_, losses) = curves.best, curves.valid
    if best is None or best > EARLY * curves.updates or losses[-1] < (1 + NOTICEABLE) * losses.min():
        return None
    if losses.min() < LEARNED:
        return None
    share = best / curves.updates
    at_best = mean_between(curves.train, max(share - LAST / 2, 0), share + LAST / 2, curves.updates)
    at_end = mean_between(curves.train, 1 - LAST, 1.0, curves.updates)
    if at_best is None or at_end is None or at_end >= at_best:
        return None
    return Finding(
        "over-trained",
        "hint",
        f"Over-trained: validation was best at step {best:,} of {curves.updates:,}, which is kept; its loss has "
        f"risen from its lowest, {losses.min():.3g}, to {losses[-1]:.3g}, while that of training fell from "
        f"{at_best:.3g} to {at_end:.3g}.",
        "Use more drop-out or more data; a smaller model may do as well.",
        commands.more_dropout(),
    )


def lowest(curve: Curve, step: float) -> tuple[float | None, float | None]:
    """The lowest value up to a step, and after it."""
    steps, values = curve
    halves = values[steps <= step], values[steps > step]
    before, after = (float(half.min()) if len(half) else None for half in halves)
    return before, after


def mean_between(curve: Curve, begin: float, end: float, updates: int) -> float | None:
    """The mean over a stretch of the training, given in shares of it; None where nothing was written down."""
    steps, values = curve
    found = values[(steps > begin * updates) & (steps <= end * updates)]
    return float(np.mean(found)) if len(found) else None
