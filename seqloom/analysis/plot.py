"""Figures in one style. The only file that imports matplotlib, which comes with the extra "plot"."""

from __future__ import annotations

from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from typing import Any

from seqloom.errors import SeqloomError
from seqloom.storage.files import replace_file, saving

# Okabe & Ito 2008: distinguishable for the colour-blind. Their yellow is left out, too pale for a line.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", "--", ":", "-.")
FORMATS = (".png", ".svg")


def matplotlib() -> Any:
    """The library, if it is installed."""
    try:
        import matplotlib.figure
    except ImportError:
        raise SeqloomError('a picture needs the extra "plot": pip install "seqloom[plot]"') from None
    return matplotlib


def check(paths: Iterable[Path | str]) -> None:
    """Refuse paths that no picture can be written to, before anything is computed."""
    for path in map(Path, paths):
        if path.suffix.lower() not in FORMATS:
            raise SeqloomError(
                f"{path}: only .png and .svg can be written; name it {path.stem or 'picture'}.png or .svg"
            )
        if not path.parent.is_dir():
            raise SeqloomError(f"{path}: there is no folder {path.parent}; make it, or choose another --out")
        if path.is_dir():
            raise SeqloomError(f"{path} is a folder; expected the name of a picture, such as {path / 'picture.png'}")
        matplotlib()


def figure(rows: int = 1, columns: int = 1, shared: bool = True) -> tuple[Any, list[Any]]:
    """An empty figure and its panels, row by row; if shared, panels of a row or column have one axis."""
    made = matplotlib().figure.Figure(figsize=(5.2 * columns + 1, 3.4 * rows + 0.8), layout="constrained")
    axes: dict[str, Any] = {"sharex": "col", "sharey": "row"} if shared else {}
    panels = list(made.subplots(rows, columns, squeeze=False, **axes).flat)
    for panel in panels:
        panel.grid(color="#DDDDDD", linewidth=0.6)
        panel.set_axisbelow(True)
        panel.spines[["top", "right"]].set_visible(False)
    return made, panels


def square_panels(rows: int, columns: int) -> tuple[Any, list[Any]]:
    """An empty figure and its panels, row by row, without axes and with one scale for both directions."""
    made = matplotlib().figure.Figure(figsize=(2.6 * columns + 0.4, 2.6 * rows + 0.5), layout="constrained")
    panels = list(made.subplots(rows, columns, squeeze=False).flat)
    for panel in panels:
        panel.set_aspect("equal", adjustable="datalim")
        panel.set_axis_off()
    return made, panels


def line(number: int) -> dict[str, Any]:
    """The style of the line of that number, the same in every panel: seven colours, then other dashes."""
    return {"color": COLOURS[number % len(COLOURS)], "linestyle": DASHES[number // len(COLOURS) % len(DASHES)]}


def legend(figure: Any, handles: list[Any], labels: list[str]) -> None:
    """Labels above the panels, as plain text, not as formulas."""
    shown = [f" {label}".replace("$", r"\$") for label in labels]  # labels that begin with _ would be left out
    across = max(1, min(len(shown), int(figure.get_figwidth() * 12) // (max(map(len, shown)) + 6)))
    figure.set_figheight(figure.get_figheight() + 0.2 * -(-len(shown) // across))
    figure.legend(handles, shown, loc="outside upper left", ncols=across, frameon=False, fontsize=9)


def save(figure: Any, path: Path | str) -> None:
    """Write PNG or SVG, by suffix, atomically; the same figure gives the same file."""
    check([path])
    path = Path(path)
    written, kind = BytesIO(), path.suffix.lower()[1:]
    with matplotlib().rc_context({"svg.hashsalt": "seqloom"}):
        figure.savefig(written, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else None)
    with saving(path):
        replace_file(path, written.getvalue())
