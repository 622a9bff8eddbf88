"""The learning rate: too high, or never reached."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from seqloom.analysis.diagnosis.commands import Commands
from seqloom.analysis.diagnosis.curves import LAST, Curves, mean_between
from seqloom.analysis.diagnosis.finding import Finding, percent
from seqloom.storage.history import History
from seqloom.train.divergence import HANDFUL, USUAL

WARM = 0.1  # a warm-up of more than a tenth leaves too few updates at full speed
RISE = 0.2  # a training loss that rises by a fifth has been thrown out of its minimum
OVERSHOT = 1.5  # times the first loss: drop-out alone raises a training loss by less
SKIPPED = 0.01  # of the updates: single faults may come from single batches
CLIPPED = 0.95  # of the updates; clipping alone is no fault, but with a loss that does not fall it is
STUCK = 0.9  # of the first loss
SWING = 0.1  # a change between two validations that chance does not explain
SWINGS = 1 / 3  # of the changes, upwards as well as downwards
FEW = 4  # changes: too few to call them swings
SLOWER = 3.0  # the next rate to try is this many times lower, and at most so many times a usual one


@dataclass(frozen=True)
class Rates:
    """What metrics.jsonl says about the steps of the optimiser."""

    peak: float  # of the recipe
    usual: float  # with the optimiser of the recipe
    highest: float | None  # that was used in a logged update
    warmup: int
    updates: int
    clipped: float | None  # share of the updates in the second half; None for runs that did not count them
    skipped: int
    gradient_norm: float | None  # median

    @classmethod
    def read(cls, history: History) -> Rates:
        lines = [line for line in history.lines if line["kind"] == "train"]
        settings = history.recipe.get("train", {})
        updates = max((line["step"] for line in history.lines), default=0)
        norms = sorted(line["gradient_norm"] for line in lines if line.get("gradient_norm") is not None)
        rates = [line["learning_rate"] for line in lines if line.get("learning_rate") is not None]
        clipped = [line["clipped"] for line in lines if line.get("clipped") is not None and 2 * line["step"] > updates]
        return cls(
            peak=float(settings.get("learning_rate", 1e-3)),
            usual=USUAL.get(settings.get("optimiser", "adamw"), USUAL["adamw"]),
            highest=max(rates, default=None),
            warmup=int(settings.get("warmup", 100)),
            updates=updates,
            clipped=sum(clipped) / len(clipped) if clipped else None,
            skipped=int(sum(line.get("skipped") or 0 for line in lines)),
            gradient_norm=norms[len(norms) // 2] if norms else None,
        )

    def figures(self) -> dict[str, Any]:
        return asdict(self)


def too_high(curves: Curves, rates: Rates, commands: Commands) -> Finding | None:
    signs = overshoot(curves), rise(curves), faults(rates), stuck(curves, rates), swings(curves)
    reasons = [sign for sign in signs if sign]
    if not reasons:
        return None
    clipped = "" if rates.clipped is None else f" The gradient was clipped in {percent(rates.clipped)} of the updates."
    return Finding(
        "learning-rate-too-high",
        "problem",
        f"The learning rate of {rates.peak:.2g} is probably too high: {', and '.join(reasons)}.{clipped}",
        "Lower it.",
        commands.again("slower", f"train.learning_rate={min(rates.peak / SLOWER, rates.usual * SLOWER):.1g}"),
    )


def overshoot(curves: Curves) -> str:
    """An early explosion, which a falling learning rate may hide at the end."""
    for name, (steps, losses) in (("training", curves.train), ("validation", curves.valid)):
        if curves.start and len(losses) and losses.max() > OVERSHOT * curves.start:
            highest, step = f"{losses.max():.3g}", int(steps[losses.argmax()])
            return f"the {name} loss rose to {highest} at step {step:,}; an untrained model has {curves.start:.3g}"
    return ""


def rise(curves: Curves) -> str:
    """Both losses rise: in over-training, that of training falls."""
    fifths = [mean_between(curves.train, LAST * part, LAST * (part + 1), curves.updates) for part in range(5)]
    known, (_, losses) = [loss for loss in fifths if loss is not None], curves.valid
    if len(known) < 2 or not len(losses) or known[-1] <= (1 + RISE) * min(known):
        return ""
    if losses[-1] <= (1 + RISE) * losses.min():
        return ""
    train, valid = f"{min(known):.3g} to {known[-1]:.3g}", f"{losses.min():.3g} to {losses[-1]:.3g}"
    return f"the loss rises again, in training from {train}, in validation from {valid}"


def faults(rates: Rates) -> str:
    if rates.skipped <= SKIPPED * rates.updates:
        return ""
    return f"{rates.skipped:,} of {rates.updates:,} updates were skipped because they were not finite"


def stuck(curves: Curves, rates: Rates) -> str:
    last = mean_between(curves.train, 1 - LAST, 1.0, curves.updates)
    if curves.updates < HANDFUL or not curves.start or last is None or (rates.clipped or 0.0) < CLIPPED:
        return ""
    return f"the loss hardly falls ({curves.start:.3g} to {last:.3g})" if last > STUCK * curves.start else ""


def swings(curves: Curves) -> str:
    changes = [after / before - 1 for before, after in pairwise(curves.valid[1].tolist()) if before > 0]
    up, down = sum(each > SWING for each in changes), sum(each < -SWING for each in changes)
    if len(changes) < FEW or min(up, down) < SWINGS * len(changes):
        return ""
    return f"the validation loss swings: {up} of {len(changes)} changes go up by more than a tenth, {down} down"


def never_reached(rates: Rates, commands: Commands) -> Finding | None:
    """The warm-up is longer than the training, or than a tenth of it."""
    if rates.warmup <= WARM * rates.updates or not rates.updates:
        return None
    whole = rates.warmup >= rates.updates
    highest = f"; the highest rate was {rates.highest:.2g} of {rates.peak:.2g}" if whole and rates.highest else ""
    what = "The learning rate never reached its peak" if whole else "Much of the training was warm-up"
    return Finding(
        "learning-rate-never-reached" if whole else "long-warm-up",
        "problem" if whole else "hint",
        f"{what}: {rates.warmup:,} updates of warm-up in a training of {rates.updates:,}{highest}.",
        "Shorten the warm-up, or train longer.",
        commands.again("warm", f"train.warmup={max(1, rates.updates // 20)}"),
    )
