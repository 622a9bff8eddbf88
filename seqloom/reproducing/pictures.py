"""Pictures of studies that learning curves do not tell."""

from __future__ import annotations

from typing import Any

from seqloom.explain import plot


def distributions(record: dict[str, Any]) -> Any:
    """A panel a variant: bars of what it measured, which are probabilities."""
    rows = record["rows"]
    figure, panels = plot.figure(1, len(rows))
    for number, (row, panel) in enumerate(zip(rows, panels)):
        measured = row["measured"]
        panel.bar(list(measured), list(measured.values()), color=plot.line(number)["color"])
        panel.set_title(row["variant"])
        panel.set_ylim(0, 1)
    panels[0].set_ylabel("probability")
    return figure
