"""Runs side by side: in what their recipes differ, what they came to, and how they got there.

Runs that differ in nothing but their seed are one row: a mean and its standard error. Two rows with the same seeds
are also compared seed by seed, since a gain that not all seeds see may be chance.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, takewhile
from pathlib import Path
from typing import Any

import numpy as np

from seqloom import metrics
from seqloom.analysis import plot
from seqloom.analysis.table import aligned
from seqloom.config.complete import complete
from seqloom.config.recipes import difference
from seqloom.errors import SeqloomError, nearest, show
from seqloom.explain.terminal import visible
from seqloom.storage.history import Curve, History

# A seed decides what is held out, and so how long outputs may be; and each starts from a run of its own.
FOUND = ("seed", "decoder.length_ratio", "decoder.length_offset", "init")
KEYS = 4  # differences that are shown


@dataclass(frozen=True)
class Estimate:
    """A value, or the mean of several with its standard error."""

    mean: float
    error: float | None = None

    @classmethod
    def of(cls, values: Sequence[float]) -> Estimate:
        error = float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else None
        return cls(float(np.mean(values)), error)

    def __str__(self) -> str:
        if not self.error:
            return f"{self.mean:.4g}"
        digits = max(1 - math.floor(math.log10(self.error)), 0)  # two figures of the error, and no more of the mean
        return f"{self.mean:.{digits}f} ± {self.error:.{digits}f}"


@dataclass(frozen=True)
class Row:
    """A run, or several of one recipe that differ in their seed."""

    name: str
    runs: list[History]
    settings: dict[str, str]  # the keys in which rows differ, as this one has them
    best: dict[str, Estimate]  # of the best validation
    by_seed: dict[int, float]  # the deciding measure of each run

    @property
    def parameters(self) -> int | None:
        counts = [run.parameters for run in self.runs if run.parameters is not None]
        return round(float(np.mean(counts))) if counts else None

    @property
    def steps(self) -> int:
        return round(float(np.mean([max((line["step"] for line in run.lines), default=0) for run in self.runs])))

    @property
    def minutes(self) -> Estimate:
        return Estimate.of([max((line["seconds"] for line in run.lines), default=0) / 60 for run in self.runs])


@dataclass(frozen=True)
class Pairing:
    """Two rows with the same seeds, seed by seed."""

    better: str
    worse: str
    seeds: int
    wins: int  # seeds with which the better one is better
    ties: int
    difference: Estimate  # better - worse

    def __str__(self) -> str:
        ties = f", {self.ties} alike" if self.ties else ""
        counted = f"better with {self.wins} of {self.seeds} seeds{ties}"
        return f"{self.better} against {self.worse}: {counted}, mean difference {self.difference}"


@dataclass(frozen=True)
class Comparison:
    """What `seqloom compare` shows: printed it is a table, saved it is a picture."""

    by: str
    higher_is_better: bool
    rows: list[Row]
    pairings: list[Pairing]

    def __str__(self) -> str:
        measures = list(dict.fromkeys(name for row in self.rows for name in row.best))
        lines = [["run", "parameters", "steps", "minutes", *measures, "what differs"]]
        for row in self.rows:
            counted = f"{visible(row.name)}{f' ({len(row.runs)} seeds)' if len(row.runs) > 1 else ''}"
            measured = [str(row.best.get(name, "-")) for name in measures]
            size = "-" if row.parameters is None else f"{row.parameters:,}"
            lines.append([counted, size, f"{row.steps:,}", f"{row.minutes.mean:.1f}", *measured, told(row.settings)])
        text = aligned(lines, left=(0, len(lines[0]) - 1))
        way = "higher" if self.higher_is_better else "lower"
        text.append(f"Measured at each run's best validation by {self.by} ({way} is better).")
        return "\n".join([*text, *map(str, self.pairings)])

    def save(self, path: Path | str) -> None:
        """The learning curves as PNG or SVG."""
        plot.save(picture(self), path)


def compare(runs: Sequence[str | Path], by: str | None = None) -> Comparison:
    """Runs side by side. `by` is the measure that decides; without one it is what the runs were selected by."""
    histories = [completed(History.read(path)) for path in runs]
    if not histories:
        raise SeqloomError("no run to compare: name one or more run folders")
    known = list(dict.fromkeys(name for history in histories for name in history.measures))
    if by is None:
        chosen = {history.recipe.get("train", {}).get("select_by") or "loss" for history in histories}
        by = chosen.pop() if len(chosen) == 1 else "loss"
    elif by not in known:
        raise SeqloomError(f'--by "{by}": no run was validated by it{nearest(by, known)}')
    sign = 1.0 if higher_is_better(by) else -1.0
    groups = grouped(histories)
    settings = differences(groups)
    rows = []
    for name, group, own in zip(named([[run.path for run in group] for group in groups]), groups, settings):
        best = {run.seed: line for run in group if (line := run.best(by, sign))}
        found = {each: [line[each] for line in best.values() if line.get(each) is not None] for each in known}
        estimates = {each: Estimate.of(values) for each, values in found.items() if values}
        rows.append(Row(name, group, own, estimates, {seed: line[by] for seed, line in best.items()}))
    return Comparison(by, sign > 0, rows, pairings(rows, sign))


def completed(history: History) -> History:
    """With every default of its recipe, unless it has code of its own or keys of another version."""
    try:
        return replace(history, recipe=complete(history.recipe, str(history.path / "config.toml")))
    except SeqloomError:
        return history


def higher_is_better(name: str) -> bool:
    if name in ("loss", "perplexity"):
        return False
    if name not in metrics.names():
        raise SeqloomError(f'--by "{name}": no metric that says which way is better{nearest(name, metrics.names())}')
    return bool(metrics.find(name).HIGHER_IS_BETTER)


# -- which runs belong together, and in what they differ


def grouped(histories: Iterable[History]) -> list[list[History]]:
    """Runs of one recipe, each with another seed, stand together; two with the same seed are repetitions."""
    groups: list[list[History]] = []
    for history in histories:
        for group in groups:
            changed = difference(group[0].recipe, history.recipe)
            begins_alike = beginning_of(group[0].recipe) == beginning_of(history.recipe)
            if set(changed) <= set(FOUND) and begins_alike and history.seed not in [other.seed for other in group]:
                group.append(history)
                break
        else:
            groups.append([history])
    return [sorted(group, key=lambda history: history.seed) for group in groups]


def beginning_of(recipe: dict[str, Any]) -> str | None:
    """The run a recipe starts from, whatever its numbers, which tell seeds apart."""
    return re.sub(r"\d+", "", recipe["init"]) if recipe.get("init") else None


def differences(groups: Sequence[list[History]]) -> list[dict[str, str]]:
    """For each group the keys in which any two differ: "encoder.cell" for another cell, whose own keys say no more."""
    recipes = [{**group[0].recipe, "seed": ", ".join(str(run.seed) for run in group)} for group in groups]
    changed = [key for other in recipes[1:] for key in difference(recipes[0], other)]
    parts = [key.removesuffix(".type") for key in changed if key.endswith(".type")]
    keys = dict.fromkeys([*parts, *changed])  # parts first: they tell most
    kept = [key for key in keys if not any(key.startswith(f"{other}.") for other in keys)]
    return [{key: value_at(recipe, key) for key in kept} for recipe in recipes]


def value_at(table: Any, key: str) -> str:
    """A value of a recipe in a word or two."""
    for name in key.split("."):
        table = table.get(name) if isinstance(table, dict) else None
    if isinstance(table, dict):
        table = table.get("type", table)
    return "none" if table is None else visible(table) if isinstance(table, str) else show(table)


def told(settings: dict[str, str]) -> str:
    more = f", and {len(settings) - KEYS} more" if len(settings) > KEYS else ""
    return ", ".join(f"{key}={value}" for key, value in list(settings.items())[:KEYS]) + more


def named(groups: Sequence[list[Path]]) -> list[str]:
    """A short name for each: of a folder, or what the folders of several seeds begin with."""
    whole = [
        str(group[0].resolve()) if len(group) == 1 else re.sub(r"[-_./ ]*(seed)?[-_ ]*\d*$", "", beginning(group))
        for group in groups
    ]
    short = [Path(name).name or name for name in whole]
    return [name if short.count(name) == 1 else os.path.relpath(long) for name, long in zip(short, whole)]


def beginning(paths: Sequence[Path]) -> str:
    """What all of them begin with, be it in the middle of a name."""
    letters = zip(*(str(path.resolve()) for path in paths))
    return "".join(each[0] for each in takewhile(lambda each: len(set(each)) == 1, letters))


def pairings(rows: Sequence[Row], sign: float) -> list[Pairing]:
    """Every two rows of several seeds that have the same ones."""
    found = []
    for first, second in combinations(rows, 2):
        if len(first.by_seed) < 2 or first.by_seed.keys() != second.by_seed.keys():
            continue
        gains = [sign * (value - second.by_seed[seed]) for seed, value in first.by_seed.items()]
        if sum(gains) < 0:
            first, second, gains = second, first, [-gain for gain in gains]
        wins, ties = sum(gain > 0 for gain in gains), sum(gain == 0 for gain in gains)
        difference = Estimate.of([sign * gain for gain in gains])
        found.append(Pairing(first.name, second.name, len(gains), wins, ties, difference))
    return found


# -- the picture


def picture(comparison: Comparison) -> Any:
    """The deciding measure against steps and against minutes; below it the losses, those of training thin."""
    measures = list(dict.fromkeys([comparison.by, "loss"]))
    figure, panels = plot.figure(len(measures), 2)
    handles = []
    for number, row in enumerate(comparison.rows):
        look = plot.line(number)
        for place, panel in enumerate(panels):
            measure, across = measures[place // 2], ("step", "minutes")[place % 2]
            drawn = curves(panel, [run.curve("valid", measure, across) for run in row.runs], look, band=True)
            if measure == "loss":
                curves(panel, [run.curve("train", measure, across) for run in row.runs], look, band=False)
            handles += [drawn] if place == 0 else []
    for measure, panel in zip(measures, panels[::2]):
        panel.set_ylabel("loss (thin: training)" if measure == "loss" else f"{measure} in validation")
    for across, panel in zip(("updates", "minutes"), panels[-2:]):
        panel.set_xlabel(across)
    seeds = [f" ({len(row.runs)} seeds, ± standard error)" if len(row.runs) > 1 else "" for row in comparison.rows]
    plot.legend(figure, handles, [f"{visible(row.name)}{many}" for row, many in zip(comparison.rows, seeds)])
    return figure


def curves(panel: Any, found: Sequence[Curve], look: dict[str, Any], band: bool) -> Any:
    """One line for all seeds, their mean where all of them have been, and how sure it is."""
    places, mean, error = averaged([curve for curve in found if len(curve[0])])
    if band and error.any():
        panel.fill_between(places, mean - error, mean + error, color=look["color"], alpha=0.2, linewidth=0)
    few = {"marker": "o", "markersize": 3} if band and len(places) < 20 else {}
    (line,) = panel.plot(places, mean, **look, **few, linewidth=1.8 if band else 0.6, alpha=1 if band else 0.7)
    return line


def averaged(found: Sequence[Curve]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Places, means and standard errors, (N,) each. Curves are read between their points where they have none."""
    if not found:
        return np.empty(0), np.empty(0), np.empty(0)
    places = np.unique(np.concatenate([places for places, _ in found]))
    first, last = max(places[0] for places, _ in found), min(places[-1] for places, _ in found)
    places = places[(places >= first) & (places <= last)]
    values = np.stack([np.interp(places, *curve) for curve in found])  # (seeds, N)
    spread = values.std(0, ddof=1) / math.sqrt(len(found)) if len(found) > 1 else np.zeros(len(places))
    return places, values.mean(0), spread
