"""Confusion matrix: how often each label or tag was taken for which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from seqloom.analysis import plot
from seqloom.contracts import Task
from seqloom.errors import SeqloomError

MOST = 40  # labels in a picture, the most frequent ones
OTHERS = "(others)"
READABLE = 20  # with fewer labels, shares are printed into the cells
Confusions = Counter[tuple[str, str]]  # (reference, prediction)


def confusions(task: Task, predictions: Sequence[Any], references: Sequence[Sequence[Any]]) -> Confusions:
    """Counts of all labels, or of the tags of all tokens. With several references, one that was met counts."""
    found: Confusions = Counter()
    for prediction, choices in zip(predictions, references):
        reference = prediction if prediction in choices else choices[0]
        pairs: Iterable[tuple[str, str]] = [(str(reference), str(prediction))]
        found.update(zip(reference.split(), prediction.split()) if task.per_token else pairs)
    return found


def draw_confusions(found: Confusions, path: Path) -> None:
    """Write the picture: one row per reference, as shares of it."""
    names, table = shares(found)
    if len(names) < 2:
        raise SeqloomError("a confusion matrix compares labels, and the data has only one; give other --data")
    side = 2.2 + 0.32 * len(names)
    figure = plot.matplotlib().figure.Figure(figsize=(side + 0.6, side), layout="constrained")
    panel = figure.subplots()
    image = panel.imshow(table, vmin=0, vmax=1, cmap="Blues")
    shown = [name.replace("$", r"\$") for name in names]
    panel.set_xticks(range(len(names)), shown, rotation=90)
    panel.set_yticks(range(len(names)), shown)
    panel.set(xlabel="prediction", ylabel="reference")
    for row, values in enumerate(table if len(names) <= READABLE else []):
        for column, share in enumerate(values):
            if share >= 0.005:
                colour = "white" if share > 0.5 else "black"
                panel.text(column, row, f"{100 * share:.0f}", ha="center", va="center", fontsize=7, color=colour)
    figure.colorbar(image, ax=panel, shrink=0.8, label="share of the reference")
    plot.save(figure, path)


def shares(found: Confusions) -> tuple[list[str], list[list[float]]]:
    """The labels, most frequent references first, and for each the shares of what it was taken for."""
    counts: Counter[str] = Counter()
    for (reference, prediction), times in found.items():
        counts[reference] += times
        counts[prediction] += 0
    names = sorted(counts, key=lambda name: (-counts[name], name))
    if len(names) > MOST:
        names = [*names[: MOST - 1], OTHERS]
    place = {name: number for number, name in enumerate(names)}
    table = [[0.0] * len(names) for _ in names]
    for (reference, prediction), times in found.items():
        table[place.get(reference, len(names) - 1)][place.get(prediction, len(names) - 1)] += times
    return names, [[value / (sum(row) or 1.0) for value in row] for row in table]
