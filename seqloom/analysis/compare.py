"""Runs side by side: how their recipes differ, their best validations, and their learning curves.

Runs that differ only in their seed are one row: a mean and its standard error. Two rows with the same seeds are also
compared seed by seed, since a gain that not all seeds show may be chance.
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
from seqloom.analysis.learning_curves import learning_curves
from seqloom.analysis.table import align_columns
from seqloom.config.complete import complete
from seqloom.config.recipes import difference
from seqloom.errors import SeqloomError, nearest, printable, show
from seqloom.storage.history import History

# A seed decides what is held out, and so how long outputs may be; and each seed may start from a run of its own.
VARY_WITH_SEED = ("seed", "decoder.length_ratio", "decoder.length_offset", "init")
SHOWN_SETTINGS = 4  # in the table


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
        digits = max(1 - math.floor(math.log10(self.error)), 0)  # two digits of the error, and the mean as far
        return f"{self.mean:.{digits}f} ± {self.error:.{digits}f}"


@dataclass(frozen=True)
class Row:
    """A run, or several of one recipe with different seeds."""

    name: str
    runs: list[History]
    settings: dict[str, str]  # the keys in which rows differ, with the values of this row
    best: dict[str, Estimate]  # the measures of the best validation
    by_seed: dict[int, float]  # the measure that decides, of each run

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
    wins: int  # seeds for which the better one is better
    ties: int
    difference: Estimate  # better - worse

    def __str__(self) -> str:
        ties = f", {self.ties} tied" if self.ties else ""
        wins = f"better with {self.wins} of {self.seeds} seeds{ties}"
        return f"{self.better} against {self.worse}: {wins}, mean difference {self.difference}"


@dataclass(frozen=True)
class Comparison:
    """The result of `seqloom compare`: prints as a table, saves as a picture."""

    by: str
    higher_is_better: bool
    rows: list[Row]
    pairings: list[Pairing]

    def __str__(self) -> str:
        measures = list(dict.fromkeys(name for row in self.rows for name in row.best))
        lines = [["run", "parameters", "steps", "minutes", *measures, "what differs"]]
        for row in self.rows:
            name = f"{row.name}{f' ({len(row.runs)} seeds)' if len(row.runs) > 1 else ''}"
            size = "-" if row.parameters is None else f"{row.parameters:,}"
            values = [str(row.best.get(measure, "-")) for measure in measures]
            lines.append([name, size, f"{row.steps:,}", f"{row.minutes.mean:.1f}", *values, summarise(row.settings)])
        text = align_columns(lines, left=(0, len(lines[0]) - 1))
        better = "higher" if self.higher_is_better else "lower"
        text.append(f"Measured at each run's best validation by {self.by} ({better} is better).")
        return "\n".join([*text, *(printable(str(each)) for each in self.pairings)])

    def figure(self) -> Any:
        """The learning curves."""
        return learning_curves(self.by, [(printable(row.name), row.runs) for row in self.rows])

    def save(self, path: Path | str) -> None:
        """The learning curves as PNG or SVG."""
        plot.save(self.figure(), path)


def compare(runs: Sequence[str | Path], by: str | None = None) -> Comparison:
    """Runs side by side. `by` is the measure that decides; by default the one that the runs were selected by."""
    histories = [with_defaults(History.read(path)) for path in runs]
    if not histories:
        raise SeqloomError("no run to compare: name one or more run folders")
    known = list(dict.fromkeys(name for history in histories for name in history.measures))
    if by is None:
        selected_by = {history.recipe.get("train", {}).get("select_by") or "loss" for history in histories}
        by = selected_by.pop() if len(selected_by) == 1 else "loss"
    elif by not in known:
        raise SeqloomError(f'--by "{by}": no run was validated by it{nearest(by, known)}')
    measure = by.rpartition("/")[2]  # of a run of several tasks: "trees/bracket_f1"
    if measure not in (*metrics.LOSSES, *metrics.names()):
        raise SeqloomError(f'--by "{by}": not known whether higher is better{nearest(by, metrics.names())}')
    sign = 1.0 if metrics.higher_is_better(measure) else -1.0
    groups = group_seeds(histories)
    names = short_names([[run.path for run in group] for group in groups])
    rows = []
    for name, group, settings in zip(names, groups, differences(groups)):
        best = {run.seed: line for run in group if (line := run.best(by, sign))}
        values = {each: [line[each] for line in best.values() if line.get(each) is not None] for each in known}
        estimates = {each: Estimate.of(found) for each, found in values.items() if found}
        rows.append(Row(name, group, settings, estimates, {seed: line[by] for seed, line in best.items()}))
    return Comparison(by, sign > 0, rows, pairings(rows, sign))


def with_defaults(history: History) -> History:
    """The history with every default in its recipe, unless that has code of its own or keys of another version."""
    try:
        return replace(history, recipe=complete(history.recipe, str(history.path / "config.toml")))
    except SeqloomError:
        return history


# -- which runs belong together, and how they differ


def group_seeds(histories: Iterable[History]) -> list[list[History]]:
    """Runs that differ only in their seed, together; a second run with the same seed is a group of its own."""
    groups: list[list[History]] = []
    for history in histories:
        for group in groups:
            varies = set(difference(group[0].recipe, history.recipe)) <= set(VARY_WITH_SEED)
            same_init = init_without_seed(group[0].recipe) == init_without_seed(history.recipe)
            if varies and same_init and history.seed not in [other.seed for other in group]:
                group.append(history)
                break
        else:
            groups.append([history])
    return [sorted(group, key=lambda history: history.seed) for group in groups]


def init_without_seed(recipe: dict[str, Any]) -> str | None:
    """The run a recipe starts from, without the numbers that tell seeds apart."""
    return re.sub(r"\d+", "", recipe["init"]) if recipe.get("init") else None


def differences(groups: Sequence[list[History]]) -> list[dict[str, str]]:
    """For each group the keys in which any two differ; of parts of different types ("encoder.cell") only the type."""
    recipes = [{**group[0].recipe, "seed": ", ".join(str(run.seed) for run in group)} for group in groups]
    changed = [key for other in recipes[1:] for key in difference(recipes[0], other)]
    parts = [key.removesuffix(".type") for key in changed if key.endswith(".type")]
    keys = dict.fromkeys([*parts, *changed])  # parts first: they matter most
    kept = [key for key in keys if not any(key.startswith(f"{other}.") for other in keys)]
    return [{key: value_at(recipe, key) for key in kept} for recipe in recipes]


def value_at(table: Any, key: str) -> str:
    """A value of a recipe in a word or two."""
    for name in key.split("."):
        table = table.get(name) if isinstance(table, dict) else None
    if isinstance(table, dict):
        table = table.get("type", table)
    return "none" if table is None else table if isinstance(table, str) else show(table)


def summarise(settings: dict[str, str]) -> str:
    more = f", and {len(settings) - SHOWN_SETTINGS} more" if len(settings) > SHOWN_SETTINGS else ""
    return ", ".join(f"{key}={value}" for key, value in list(settings.items())[:SHOWN_SETTINGS]) + more


def short_names(groups: Sequence[list[Path]]) -> list[str]:
    """A short name for each group: of its folder, or the common prefix of the folders of several seeds."""
    whole = []
    for group in groups:
        prefix = common_prefix([str(path.resolve()) for path in group])
        whole.append(prefix if len(group) == 1 else re.sub(r"[-_./ ]*(seed)?[-_ ]*\d*$", "", prefix))
    short = [Path(name).name or name for name in whole]
    return [name if short.count(name) == 1 else os.path.relpath(long) for name, long in zip(short, whole)]


def common_prefix(names: Sequence[str]) -> str:
    """Of letters, not of folders: "lstm-" of lstm-1 and lstm-2."""
    return "".join(each[0] for each in takewhile(lambda each: len(set(each)) == 1, zip(*names)))


def pairings(rows: Sequence[Row], sign: float) -> list[Pairing]:
    """Every two rows that have the same seeds, several of them."""
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
