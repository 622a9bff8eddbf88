"""The rooms of the package, read from its imports: the rule that tests hold, and the picture in architecture.md.

python docs/architecture.py            writes docs/images/architecture.svg
python docs/architecture.py --check    says whether the picture is still true

Imports inside functions and for type checking count like any other: a name in a signature is knowledge.
"""

from __future__ import annotations

import ast
import sys
from functools import cache
from html import escape
from pathlib import Path

ROOT = Path(__file__).parent.parent / "seqloom"
PICTURE = Path(__file__).parent / "images" / "architecture.svg"
# A room imports only from rooms before it; so do the rooms within nn. Modules at the top of the package count as rooms.
ROOMS = (
    *("version", "errors", "arrays", "values", "types", "contracts", "compute", "storage", "metrics", "search", "data"),
    *("tasks", "nn", "objectives", "config", "inference", "explain", "predictor", "engines", "train", "analysis"),
    *("studies", "testing", "serve", "cli"),
)
NN = (
    "ops",
    "cells",
    "attention",
    "layers",
    "encoders",
    "decoders",
    "heads",
    "teacher_forcing",
    "model",
    "multi_task",
    "combine",
)
ENDS = (
    "",
    "__main__",
)  # the package itself and `python -m seqloom`: they import from any room, and no room imports them


@cache
def modules() -> dict[str, Path]:
    """Every file of the package: {"nn.cells.lstm": path, ...}; the package itself is ""."""
    paths = {path.relative_to(ROOT).with_suffix(""): path for path in sorted(ROOT.rglob("*.py"))}
    named = {".".join(name.parts): path for name, path in paths.items()}
    return {name.removesuffix("__init__").removesuffix("."): path for name, path in named.items()}


def imported(source: str, name: str = "", is_package: bool = False) -> set[str]:
    """What a file imports of the package anywhere: at its top, in a function, for type checking."""
    package = ["seqloom", *filter(None, name.split("."))][: None if is_package else -1]
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            found |= {f"{module}.{alias.name}" for alias in node.names}
    return {each.removeprefix("seqloom").lstrip(".") for each in found if each.split(".")[0] == "seqloom"}


@cache
def imports_of(name: str) -> set[str]:
    """The modules that a module imports."""
    path = modules()[name]
    found = set()
    for each in imported(path.read_text(encoding="utf-8"), name, path.name == "__init__.py"):
        module = each
        while module not in modules():  # the name of a class or function in a module
            module = module.rpartition(".")[0]
        found.add(module)
    return found - {name}


def room_of(name: str) -> str:
    """The room that a module is in: "nn.cells" for a cell."""
    head, *rest = name.split(".")
    return f"nn.{rest[0]}" if head == "nn" and rest else head


def rank(room: str) -> int:
    """Where a room stands in the order."""
    head, _, inner = room.partition(".")
    place = ROOMS.index(head) * len(NN)
    return place + (NN.index(inner) if inner else 0)


def upward() -> list[str]:
    """Imports that go against the order; empty in a house that stands."""
    return [
        f"{name} imports {other}"
        for name in modules()
        if name not in ENDS
        for other in sorted(imports_of(name))
        if other in ENDS or rank(room_of(other)) > rank(room_of(name))
    ]


def cycles() -> dict[str, set[str]]:
    """Modules that import each other in a circle, and what leads to them."""
    graph = {name: set(imports_of(name)) for name in modules()}
    while leaves := {name for name, needs in graph.items() if not needs & graph.keys()}:
        graph = {name: needs for name, needs in graph.items() if name not in leaves}
    return graph


# -- the picture


def rooms() -> dict[str, set[str]]:
    """Each room that exists, nn as one, and the rooms it imports from."""
    found: dict[str, set[str]] = {}
    for name in modules():
        if name in ENDS:
            continue
        head = name.split(".")[0]
        others = {other.split(".")[0] for other in imports_of(name)} - {head}
        found[head] = found.get(head, set()) | others
    return found


def reduced(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """Only the arrows that no chain of others stands for."""

    @cache
    def reach(room: str) -> frozenset[str]:
        return frozenset(graph[room]).union(*(reach(other) for other in graph[room]))

    return {
        room: {other for other in needs if not any(other in reach(between) for between in needs - {other})}
        for room, needs in graph.items()
    }


def levels(graph: dict[str, set[str]]) -> dict[str, int]:
    """How many rooms stand below each, one on the other."""

    @cache
    def level(room: str) -> int:
        return max((level(other) + 1 for other in graph[room]), default=0)

    return {room: level(room) for room in graph}


def picture() -> str:
    """Rooms from the ground up, as SVG; an arrow leads from a room to one that it imports from."""
    graph = reduced(rooms())
    height = levels(graph)
    width, wide, tall, row = 960, 118, 34, 74
    top = max(height.values())
    places: dict[str, tuple[float, float]] = {}
    for level in range(top + 1):
        across = [room for room in ROOMS if height.get(room) == level]
        for column, room in enumerate(across):
            shift = (level % 2 - 0.5) * wide * 0.5 * (len(across) < 6)
            places[room] = (width * (column + 1) / (len(across) + 1) + shift, 40 + (top - level) * row)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {80 + top * row}" font-family="sans-serif" '
        'font-size="14">',
        "<title>The rooms of seqloom and what each imports from</title>",
        '<defs><marker id="tip" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
        '<path d="M0,1 L7,4 L0,7" fill="none" stroke="#56749c"/></marker></defs>',
        f'<rect width="{width}" height="{80 + top * row}" fill="#ffffff"/>',
    ]
    for room, needs in sorted(graph.items()):
        for other in sorted(needs):
            (x, y), (u, v) = places[room], places[other]
            middle = (y + tall / 2 + v - tall / 2) / 2
            lines.append(
                f'<path d="M{x:.0f},{y + tall / 2:.0f} C{x:.0f},{middle:.0f} {u:.0f},{middle:.0f} '
                f'{u:.0f},{v - tall / 2 - 1:.0f}" fill="none" stroke="#56749c" stroke-width="1.2" '
                'marker-end="url(#tip)"/>'
            )
    for room, (x, y) in sorted(places.items()):
        count = sum(name.split(".")[0] == room for name in modules())
        name = f"{room}/" if (ROOT / room).is_dir() else room
        lines.append(
            f'<rect x="{x - wide / 2:.0f}" y="{y - tall / 2:.0f}" width="{wide}" height="{tall}" rx="6" '
            f'fill="#eef3fa" stroke="#2f4b72"><title>{count} files</title></rect>'
            f'<text x="{x:.0f}" y="{y + 5:.0f}" text-anchor="middle" fill="#14233a">{escape(name)}</text>'
        )
    return "\n".join([*lines, "</svg>", ""])


def main() -> None:
    if upward() or cycles():
        sys.exit("\n".join([*upward(), *(f"in a circle: {name}" for name in cycles())]))
    if "--check" in sys.argv:
        sys.exit(0 if PICTURE.exists() and PICTURE.read_text(encoding="utf-8") == picture() else f"{PICTURE} is old")
    PICTURE.write_text(picture(), encoding="utf-8")


if __name__ == "__main__":
    main()
