"""The picture of a diagnosis: losses of both sets with the best validation marked, and errors by source length."""

from __future__ import annotations

from typing import Any

from seqloom.analysis import plot
from seqloom.analysis.diagnosis.curves import Curves
from seqloom.analysis.diagnosis.where import Errors
from seqloom.analysis.learning_curves import FEW

TALL = 20.0  # losses that differ by more than this factor are drawn on a logarithmic axis


def diagnosis_figure(curves: Curves, errors: Errors | None) -> Any:
    figure, panels = plot.figure(1, 2 if errors else 1, shared=False)
    losses = panels[0]
    (train,) = losses.plot(*curves.train, color=plot.COLOURS[0], linewidth=1.2)
    steps, values = curves.valid
    drawn = [train]
    if len(steps):
        markers = {"marker": "o", "markersize": 3} if len(steps) < FEW else {}
        (valid,) = losses.plot(steps, values, color=plot.COLOURS[1], linewidth=1.8, **markers)
        drawn.append(valid)
    labels = ["training", "validation"][: len(drawn)]
    if (best := curves.valid_at_best()) is not None:
        (mark,) = losses.plot([curves.best], [best], "*", color=plot.COLOURS[6], markersize=12, linestyle="none")
        drawn, labels = [*drawn, mark], [*labels, f"best, at step {curves.best:,}"]
    if curves.start is not None:
        drawn.append(losses.axhline(curves.start, color="#888888", linewidth=0.8, linestyle="--"))
        labels.append("before the first update")
    every = [*curves.train[1], *values, *([curves.start] if curves.start is not None else [])]
    if every and 0 < min(every) < max(every) / TALL:
        losses.set_yscale("log")
    losses.set_xlim(left=0)
    losses.set_xlabel("updates")
    losses.set_ylabel("loss")
    if errors:
        panel = panels[1]
        names = [f"{each.low}-{each.high}" if each.high != each.low else str(each.low) for each in errors.bins]
        panel.bar(names, [100 * each.error for each in errors.bins], color=plot.COLOURS[5], width=0.7)
        drawn.append(panel.axhline(100 * errors.overall, color=plot.COLOURS[3], linewidth=1.2))
        labels.append("error over all")
        panel.set_xlabel("tokens of the source")
        panel.set_ylabel("token error rate, %")
        panel.grid(visible=False, axis="x")
    plot.legend(figure, drawn, labels)
    return figure
