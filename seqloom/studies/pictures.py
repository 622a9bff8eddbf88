"""Pictures of studies, where learning curves do not tell enough."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from seqloom.analysis import plot
from seqloom.analysis.points import points_figure
from seqloom.explain.record import Points
from seqloom.studies.measures.pixels import from_text


def distributions(record: dict[str, Any]) -> Any:
    """One panel per variant: its measures, which are probabilities, as bars."""
    rows = record["rows"]
    figure, panels = plot.figure(1, len(rows))
    for number, (row, panel) in enumerate(zip(rows, panels)):
        measured = row["measured"]
        panel.bar(list(measured), list(measured.values()), color=plot.line(number)["color"])
        panel.set_title(row["variant"])
        panel.set_ylim(0, 1)
    panels[0].set_ylabel("probability")
    return figure


def errors_by_task(record: dict[str, Any]) -> Any:
    """Two bars per task: the measured and the published error."""
    rows = [row["measured"] for row in record["rows"] if row["chosen"] and "published" in row["measured"]]
    figure, (panel,) = plot.figure()
    handles = []
    for number, name in enumerate(("error", "published")):
        places = [task + 0.4 * (number - 0.5) for task in range(1, len(rows) + 1)]
        values = [measured[name] for measured in rows]
        handles.append(panel.bar(places, values, width=0.4, color=plot.line(number)["color"]))
    panel.set_xticks(range(1, len(rows) + 1))
    panel.set_xlabel("task")
    panel.set_ylabel("error, %")
    plot.legend(figure, handles, ["measured", "published"])
    return figure


def trade_off(record: dict[str, Any]) -> Any:
    """Quality against the average proportion of the source read: a line for wait-k, a point for an agent."""
    figure, (panel,) = plot.figure()
    handles = []
    for number, row in enumerate(record["rows"]):
        measured = row["measured"]
        delays = {name.removeprefix("AP"): value for name, value in measured.items() if name.startswith("AP")}
        quality = {
            name: next(m for key, m in measured.items() if key.endswith(name) and key[:2] != "AP") for name in delays
        }
        handles += panel.plot(list(delays.values()), list(quality.values()), marker="o", **plot.line(number))
        for name in delays:
            panel.annotate(
                name.removeprefix(", "), (delays[name], quality[name]), (4, -10), textcoords="offset points", size=8
            )
    panel.set_xlabel("average proportion of the source read")
    panel.set_ylabel(next(iter(record["rows"][0]["measured"])).partition(",")[0])
    plot.legend(figure, handles, [row["variant"] or record["name"] for row in record["rows"]])
    return figure


def difficulties(record: dict[str, Any]) -> Any:
    """Error and steps by the difficulty of an example, one line per variant."""
    figure, panels = plot.figure(2, 1)
    names = ("error", "steps")
    handles = []
    for number, row in enumerate(record["rows"]):
        for name, panel in zip(names, panels):
            found = {key.split(", ")[1]: value for key, value in row["measured"].items() if key.startswith(f"{name}, ")}
            lines = panel.plot(list(found), list(found.values()), marker="o", **plot.line(number))
        handles += lines
    for name, panel in zip(names, panels):
        panel.set_title("error, %" if name == "error" else name)
        panel.set_ylim(bottom=0)
    panels[-1].set_xlabel("components that are not 0")
    plot.legend(figure, handles, [row["variant"] for row in record["rows"]])
    return figure


ACROSS = 80  # characters in one panel


def steps_over_text(record: dict[str, Any]) -> Any:
    """A text, and above each of its characters the number of steps taken on reading it."""
    text, steps = next(row["shown"].values() for row in record["rows"] if row["shown"]["steps"])
    parts = [slice(first, first + ACROSS) for first in range(0, len(text), ACROSS)]
    figure, panels = plot.figure(len(parts), 1)
    figure.set_size_inches(12, 1.3 * len(parts) + 0.6)
    for part, panel in zip(parts, panels):
        panel.bar(range(len(steps[part])), steps[part], width=0.9, color=plot.line(0)["color"])
        panel.set_xlim(-0.7, ACROSS - 0.3)
        panel.set_xticks([])
        below = panel.get_xaxis_transform()  # x in characters, y in parts of the height
        for place, letter in enumerate(text[part]):
            shown = {"\n": "¶", "$": r"\$"}.get(letter, letter)
            panel.text(place, -0.06, shown, transform=below, ha="center", va="top", family="monospace", fontsize=9)
        panel.set_ylabel("steps")
    return figure


def over_the_truth(record: dict[str, Any]) -> Any:
    """One row per variant: its answers, drawn over the truth."""
    rows = [(row["variant"], row["shown"]["points"]) for row in record["rows"]]
    drawn = [Points(**each, triangles=record["name"] == "delaunay") for _, shown in rows for each in shown]
    titles = [variant or f"{len(each['where'])} points" for variant, shown in rows for each in shown]
    return points_figure(drawn, titles, columns=len(rows[0][1]))


def keys_over_experts(record: dict[str, Any]) -> Any:
    """One panel per variant with experts: the share of each key that each expert takes."""
    rows = [row for row in record["rows"] if row["shown"]["shares"]]
    figure, panels = plot.figure(1, len(rows))
    for row, panel in zip(rows, panels):
        panel.imshow(row["shown"]["shares"], vmin=0, cmap="Blues", aspect="auto")
        panel.grid(False)
        panel.set_title(row["variant"])
        panel.set_xlabel("expert")
    panels[0].set_ylabel("key")
    return figure


def completions(record: dict[str, Any]) -> Any:
    """One panel per variant, in it one row per picture: it, what is kept, and completions."""
    shown = [(row["variant"], row["shown"]) for row in record["rows"] if "shown" in row]
    figure, panels = plot.square_panels(1, len(shown))
    figure.set_size_inches(6.4 * len(shown), 4.6)
    for panel, (variant, each) in zip(panels, shown):
        rows = [[from_text(text, each["shape"]) for text in row] for row in each["rows"]]
        half = each["shape"][0] // 2
        kept = [np.concatenate([row[0][:half], np.full_like(row[0][half:], 0.5)]) for row in rows]
        show(panel, [[row[0], begun, *row[1:]] for row, begun in zip(rows, kept)])
        panel.set_title(variant)
    return figure


def continuations(record: dict[str, Any]) -> Any:
    """One panel per variant: a film, and below it how the model goes on after the second of these frames."""
    shown = [(row["variant"], row["shown"]) for row in record["rows"] if "shown" in row]
    figure, panels = plot.square_panels(-(-len(shown) // 2), min(len(shown), 2))
    figure.set_size_inches(12, 3.2 * -(-len(shown) // 2))
    for panel, (variant, each) in zip(panels, shown):
        show(panel, [list(from_text(text, each["shape"])) for text in each["rows"]])
        panel.set_title(variant)
    return figure


def show(panel: Any, rows: Sequence[Sequence[np.ndarray]]) -> None:
    """Pictures of one size in rows, from 0 to 1, with grey lines between them."""
    lines = [np.concatenate([framed(each) for each in row], axis=1) for row in rows]
    panel.imshow(np.concatenate(lines), cmap="gray", vmin=0, vmax=1, interpolation="nearest")


def framed(picture: np.ndarray) -> np.ndarray:
    return np.pad(picture, ((0, 1), (0, 1)), constant_values=0.7)
