"""Learning curves of runs side by side, with a band where several seeds are averaged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from seqloom.analysis import plot
from seqloom.storage.history import Curve, History

FEW = 20  # points of a curve below which they are marked


def learning_curves(measure: str, groups: Sequence[tuple[str, list[History]]]) -> Any:
    """A figure of a measure against updates and against minutes, one line per named group; below it the losses."""
    measures = list(dict.fromkeys([measure, "loss"]))
    figure, panels = plot.figure(len(measures), 2)
    handles = []
    for number, (_, runs) in enumerate(groups):
        look = plot.line(number)
        for place, panel in enumerate(panels):
            name, across = measures[place // 2], ("step", "minutes")[place % 2]
            line = draw_curve(panel, [run.curve("valid", name, across) for run in runs], look)
            if name == "loss":
                draw_curve(panel, [run.curve("train", name, across) for run in runs], look, thin=True)
            handles += [line] if place == 0 else []
    for name, panel in zip(measures, panels[::2]):
        panel.set_ylabel("loss (thin: training)" if name == "loss" else f"{name} in validation")
    for across, panel in zip(("updates", "minutes"), panels[-2:]):
        panel.set_xlabel(across)
    seeds = [f" ({len(runs)} seeds, ± standard error)" if len(runs) > 1 else "" for _, runs in groups]
    plot.legend(figure, handles, [f"{name}{many}" for (name, _), many in zip(groups, seeds)])
    return figure


def draw_curve(panel: Any, curves: Sequence[Curve], look: dict[str, Any], thin: bool = False) -> Any:
    """The mean of the curves as one line; unless thin, with a band of one standard error."""
    places, mean, error = mean_curve([curve for curve in curves if len(curve[0])])
    if thin:
        (line,) = panel.plot(places, mean, **look, linewidth=0.6, alpha=0.7)
        return line
    if error.any():
        panel.fill_between(places, mean - error, mean + error, color=look["color"], alpha=0.2, linewidth=0)
    markers = {"marker": "o", "markersize": 3} if len(places) < FEW else {}
    (line,) = panel.plot(places, mean, **look, **markers, linewidth=1.8, alpha=1)
    return line


def mean_curve(curves: Sequence[Curve]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Places, means and standard errors, (N,) each, where all curves have values; between points they are linear."""
    if not curves:
        return np.empty(0), np.empty(0), np.empty(0)
    places = np.unique(np.concatenate([places for places, _ in curves]))
    first, last = max(places[0] for places, _ in curves), min(places[-1] for places, _ in curves)
    places = places[(places >= first) & (places <= last)]
    values = np.stack([np.interp(places, *curve) for curve in curves])  # (seeds, N)
    error = values.std(0, ddof=1) / math.sqrt(len(curves)) if len(curves) > 1 else np.zeros(len(places))
    return places, values.mean(0), error
