"""Pictures of points in the plane: what an output chooses among them, over the truth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seqloom.analysis import plot
from seqloom.errors import SeqloomError
from seqloom.explain.record import Points


def picture(drawn: Sequence[Points | None], titles: Sequence[str] = (), columns: int = 3) -> Any:
    """A panel for each: the first output over the truth."""
    if not drawn:
        raise SeqloomError("picture: no points were given; expected those of one explanation or more")
    shown = [points for points in drawn if points is not None]
    if len(shown) < len(drawn):
        raise SeqloomError("picture: an explanation without points; explain a run that chooses points of the plane")
    columns = min(columns, len(drawn))
    figure, panels = plot.squares(-(-len(drawn) // columns), columns)
    handles: dict[str, Any] = {}
    for points, panel, title in zip(shown, panels, [*titles, *[""] * len(drawn)]):
        handles |= draw(panel, points)
        panel.set_title(title, fontsize=10)
    plot.legend(figure, list(handles.values()), list(handles))
    return figure


def draw(panel: Any, points: Points) -> dict[str, Any]:
    """One of them on a panel; gives what a legend explains."""
    handles: dict[str, Any] = {}
    looks = {
        "truth": {"color": "#BBBBBB", "linewidth": 5, "solid_capstyle": "round"},
        "output": {"color": plot.COLOURS[0], "linewidth": 1.4},
    }
    for name, places in (("truth", points.truth), ("output", points.outputs[0] if points.outputs else [])):
        for way in ways(places, points.triangles):
            (handles[name],) = panel.plot(*zip(*(points.where[place] for place in way)), **looks[name])
    panel.plot(*zip(*points.where), "o", color="#333333", markersize=3 if len(points.where) > 20 else 5)
    return handles


def ways(places: list[int], triangles: bool) -> list[list[int]]:
    """The lines to draw: one through all places, or one around each triangle."""
    if not triangles:
        return [places] if places else []
    triples = [places[first : first + 3] for first in range(0, len(places) - 2, 3)]
    return [[*triple, triple[0]] for triple in triples]
