"""A recipe fitted to the data and the time that are there, and the forecast of its training."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from seqloom.compute.device import choose_device
from seqloom.compute.precision import choose_precision
from seqloom.config import budget
from seqloom.config.budget import Speed
from seqloom.config.recipes import Overrides, override, packaged
from seqloom.config.settings import build_settings
from seqloom.contracts import Objective, Task
from seqloom.data.dataset import Dataset
from seqloom.data.readers import examples, reading_options
from seqloom.nn.model import Model
from seqloom.nn.multi_task import MultiTask
from seqloom.storage.run import Run
from seqloom.train import forecast, processes
from seqloom.train.batches import Batches, changes_of
from seqloom.train.display import Display
from seqloom.train.evaluation import greedy_evaluation
from seqloom.train.recipe import Data, Recipe
from seqloom.train.state import Budget, TrainingState
from seqloom.train.training import Training

MEASURED = 0.03  # share of the minutes that measuring may take
SECONDS = 5.0  # of measuring, at most
DECODED = 32  # examples whose decoding is timed
WORTH_MEASURING = 100  # updates


@dataclass(frozen=True)
class Ready:
    """A training that could begin."""

    recipe: Recipe  # every default filled in, fitted to the data and the time
    task: Task  # its codecs fitted
    data: Dataset
    model: Model | MultiTask
    objective: Objective
    trust: bool
    run: Run | None = None  # to resume
    budget: Budget | None = None  # of a limit in minutes


class Planning:
    """Which keys of a recipe may be changed: none that was set by hand, and none but those of a packaged recipe."""

    def __init__(
        self, recipe: str | Path | Recipe | None, given: Recipe, settings: Overrides, as_written: bool = False
    ):
        by_hand = override({}, settings)
        names = {name.replace("-", "_") for name in packaged()}
        is_packaged = recipe is None or (isinstance(recipe, str) and recipe.replace("-", "_") in names)
        self.fits = is_packaged and not as_written and "init" not in by_hand and "tasks" not in given
        self.as_written = as_written
        self.by_hand = {*dotted(by_hand if self.fits else given)}

    def allowed(self, changes: budget.Changes) -> budget.Changes:
        return {key: value for key, value in changes.items() if key not in self.by_hand}

    def fit_vocabulary(self, full: Recipe, data: Data) -> Recipe:
        if not self.fits or not (changes := self.allowed(budget.fit_vocabulary(full, 0))):
            return full
        data = full["data"].get("train") if data is None else data
        most = 4 * max(budget.get(full, key) for key in changes)
        options = reading_options(full["data"]) | {"running": full["task"].get("type") == "text"}
        columns = 1 if full["task"].get("source") is None else 2
        count = sum(1 for _ in islice(examples(data, columns, **options), most)) if data is not None else most
        return override(full, self.allowed(budget.fit_vocabulary(full, count)))

    def fit_to_data(self, full: Recipe, task: Task, data: Dataset) -> tuple[Recipe, list[str]]:
        """The recipe for this data, and what was changed in it."""
        if not self.fits:
            return full, []
        size = int(data.train.lengths[:, 1].sum()) if task.running else len(data.train)
        changes = budget.fit_to_data(full, size, updates_per_epoch(full, task, data), self.by_hand)
        unit, made_for = "tokens" if task.running else "examples", full["train"]["made_for"]
        words = ", ".join(f"{key} = {value}" for key, value in changes.items() if value is not None)
        line = f"Fitted to {size:,} {unit} (written for {made_for:,}): {words}."
        return override(full, changes), [line] if words else []

    def fit_to_time(self, ready: Ready, began: float, display: Display) -> Ready:
        """Turn minutes into updates; say what will be done, and what to look out for."""
        train, per_epoch = ready.recipe["train"], updates_per_epoch(ready.recipe, ready.task, ready.data)
        needed = needed_updates(train, per_epoch)
        speed, measurement = None, Measurement(ready)
        if train.get("minutes") is not None:
            ready, speed, needed = self.spend_minutes(ready, measurement, began, needed, per_epoch)
        elif needed >= WORTH_MEASURING:
            speed = measurement.speed(ready.recipe, 1.0, validation=0.0, most=math.ceil(0.02 * needed))
        for line in announcement(ready, speed, needed, per_epoch):
            display.say(line)
        return ready

    def spend_minutes(
        self, ready: Ready, measurement: Measurement, began: float, needed: int, per_epoch: budget.PerEpoch
    ) -> tuple[Ready, Speed, int]:
        """The training laid out over its minutes, the speed that was measured, and the updates that the data needs."""
        full, minutes = ready.recipe, ready.recipe["train"]["minutes"]
        allowance = min(SECONDS, MEASURED * 60 * minutes) / 2
        speed = measurement.speed(full, allowance)
        if self.fits and "train.tokens" not in self.by_hand:
            left = 60 * minutes - (time.monotonic() - began)
            tokens = budget.smaller_batch(full["train"], speed, left, min(budget.UPDATES, needed))
            tokens = processes.broadcast(tokens, measurement.device)  # clocks differ
            if tokens != full["train"]["tokens"]:
                full = override(full, {"train.tokens": tokens})
                needed = needed_updates(full["train"], per_epoch)
                speed = measurement.speed(full, allowance, speed.validation)
        free = self.fits and not {"train.epochs", "train.steps"} & self.by_hand
        longest = needed * (budget.LONGER if free else 1)
        preparation = time.monotonic() - began
        changes = budget.fit_to_time(full["train"], longest, speed, 60 * minutes - preparation)
        steps = {"train.steps": changes["train.steps"]}  # fewer than were asked for, if time does not suffice
        changes = steps if self.as_written else self.allowed(changes) | steps
        full = override(full, processes.broadcast(changes, measurement.device))
        return (
            replace(ready, recipe=full, budget=Budget(minutes, preparation, speed.validation, longest)),
            speed,
            needed,
        )


def announcement(ready: Ready, speed: Speed | None, needed: int, per_epoch: budget.PerEpoch) -> list[str]:
    """The forecast and its warnings, a line each."""
    settings, plan = build_settings(ready.recipe), ready.budget
    updates = needed_updates(ready.recipe["train"], per_epoch)
    seconds = None if speed is None else updates * speed.update
    if speed is not None and seconds is not None and plan is not None:
        validations = updates / (settings.validate_every or per_epoch(settings.tokens))
        seconds += plan.preparation + (validations + 1) * speed.validation
    lengths = ready.data.train.lengths.max(axis=0)
    source = int(lengths[0]) if ready.task.source is not None else 0
    target = 0 if ready.task.running else int(lengths[1])
    found = forecast.Forecast(updates, settings.tokens, speed, needed, seconds, source, target)
    lines = [found.line()]
    if plan is not None and updates == plan.longest and seconds is not None and seconds < 0.9 * 60 * plan.minutes:
        lines.append(f"The data needs no more than that of the {plan.minutes:g} minutes: set train.epochs for more.")
    return lines + forecast.warnings(found, settings, ready.data.train, ready.data.valid)


class Measurement:
    """How fast a training is, measured on a copy of its model."""

    def __init__(self, ready: Ready):
        settings = build_settings(ready.recipe)
        self.task, self.data, self.trust = ready.task, ready.data, ready.trust
        self.device = choose_device(settings.device)
        precision = choose_precision(settings.precision, self.device)
        self.training = Training(
            ready.model, ready.objective, device=self.device, precision=precision, seed=ready.recipe["seed"]
        )

    def speed(self, full: Recipe, seconds: float, validation: float | None = None, most: int = 1000) -> Speed:
        """Speed with these settings. A validation that is given is not measured again."""
        settings, task, data = build_settings(full), self.task, self.data
        batches = Batches(
            data.train,
            collate=task.collate,
            plan=task.plan,
            changes=changes_of(task.augment if task.augments else None, self.training.objective),
            settings=settings,
            seed=full["seed"],
            state=TrainingState(),
        )
        try:
            share = seconds if validation is not None else seconds / 2
            update, rate = forecast.measure_update(self.training, batches, settings, share, most)
            if validation is None:
                plan = task.in_order(data.valid.lengths, settings.tokens)
                decode = lambda: self.decoding(full)  # noqa: E731
                validation = forecast.measure_validation(self.training, data.valid, plan, batches, decode)
        finally:
            batches.close()
        return Speed(*processes.broadcast([update, rate, validation], self.device))

    def decoding(self, full: Recipe) -> float:
        """Seconds that the outputs of a validation take."""
        valid, task = self.data.valid_examples, self.task
        some = valid[:: max(len(valid) // DECODED, 1)][:DECODED]
        evaluate = greedy_evaluation(task, full, some, self.trust, self.training.objective, mean_length=True)
        if evaluate is None:
            return 0.0
        began = time.monotonic()
        evaluate(self.training.model)
        count = min(full["train"]["decode"] or len(valid), len(valid))
        return forecast.UNFORCED * (time.monotonic() - began) * count / len(some)


def updates_per_epoch(full: Recipe, task: Task, data: Dataset) -> Callable[[int], int]:
    """How many updates an epoch has, by the tokens of a batch."""
    accumulate, known = full["train"]["accumulate"], dict[int, int]()

    def count(tokens: int) -> int:
        if tokens not in known:
            plan = task.plan(data.train.lengths, tokens, full["seed"], 0, accumulate)
            known[tokens] = max(math.ceil(len(plan) / accumulate), 1)
        return known[tokens]

    return count


def needed_updates(train: dict[str, Any], per_epoch: Callable[[int], int]) -> int:
    """How many updates the limits allow that are not minutes."""
    epochs, steps = train.get("epochs"), train.get("steps")
    if epochs is None and steps is None:
        epochs = budget.EPOCHS
    limits = [] if steps is None else [steps]
    if epochs is not None:
        limits.append(math.ceil(epochs * per_epoch(train["tokens"])))
    return max(min(limits), 1)


def dotted(table: Recipe, prefix: str = "") -> Iterable[str]:
    """The keys of a recipe, "train.tokens" and so on."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from dotted(value, f"{prefix}{name}.")
        yield f"{prefix}{name}"
