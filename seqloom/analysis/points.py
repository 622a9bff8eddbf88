"""Figures of points in the plane: the output over the truth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seqloom.analysis import plot
from seqloom.errors import SeqloomError
from seqloom.explain.record import Points


def points_figure(several: Sequence[Points | None], titles: Sequence[str] = (), columns: int = 3) -> Any:
    """One panel per explanation: its first output over the truth."""
    if not several:
        raise SeqloomError("points_figure: no points were given; expected those of one explanation or more")
    given = [points for points in several if points is not None]
    if len(given) < len(several):
        raise SeqloomError("points_figure: an explanation without points; explain a run that chooses points")
    columns = min(columns, len(given))
    figure, panels = plot.square_panels(-(-len(given) // columns), columns)
    handles: dict[str, Any] = {}
    for points, panel, title in zip(given, panels, [*titles, *[""] * len(given)]):
        handles |= draw_points(panel, points)
        panel.set_title(title, fontsize=10)
    plot.legend(figure, list(handles.values()), list(handles))
    return figure


def draw_points(panel: Any, points: Points) -> dict[str, Any]:
    """The points, truth and output on one panel; returns the handles of the legend."""
    handles: dict[str, Any] = {}
    styles = {
        "truth": {"color": "#BBBBBB", "linewidth": 5, "solid_capstyle": "round"},
        "output": {"color": plot.COLOURS[0], "linewidth": 1.4},
    }
    for name, places in (("truth", points.truth), ("output", points.outputs[0] if points.outputs else [])):
        for path in paths(places, points.triangles):
            (handles[name],) = panel.plot(*zip(*(points.where[place] for place in path)), **styles[name])
    panel.plot(*zip(*points.where), "o", color="#333333", markersize=3 if len(points.where) > 20 else 5)
    return handles


def paths(places: list[int], triangles: bool) -> list[list[int]]:
    """The lines to draw: one through all places, or one around each triangle."""
    if not triangles:
        return [places] if places else []
    triples = [places[first : first + 3] for first in range(0, len(places) - 2, 3)]
    return [[*triple, triple[0]] for triple in triples]
