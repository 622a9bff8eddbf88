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


def trade_off(record: dict[str, Any]) -> Any:
    """Quality against the part of the source that had been read: a line for wait-k, a point for an agent."""
    figure, (panel,) = plot.figure()
    handles = []
    for number, row in enumerate(record["rows"]):
        measured = row["measured"]
        late = {name.removeprefix("AP"): value for name, value in measured.items() if name.startswith("AP")}
        good = {name: next(m for key, m in measured.items() if key.endswith(name) and key[:2] != "AP") for name in late}
        handles += panel.plot(list(late.values()), list(good.values()), marker="o", **plot.line(number))
        for name in late:
            panel.annotate(
                name.removeprefix(", "), (late[name], good[name]), (4, -10), textcoords="offset points", size=8
            )
    panel.set_xlabel("average proportion of the source that was read")
    panel.set_ylabel(next(iter(record["rows"][0]["measured"])).partition(",")[0])
    plot.legend(figure, handles, [row["variant"] or record["name"] for row in record["rows"]])
    return figure
