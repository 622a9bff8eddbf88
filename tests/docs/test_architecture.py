"""The ways through the house that docs/architecture.md describes exist, and none turns back."""

import ast
import re
from pathlib import Path

import seqloom

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
ROOT = Path(seqloom.__file__).parent


def names_in(path: Path) -> set[str]:
    """Functions, classes and methods of a file: {"fit", "Trainer", "Trainer.update"}."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{each.name}" for each in node.body if isinstance(each, ast.FunctionDef)}
    return found


def test_every_place_on_the_page_exists():
    places = re.findall(r"`([\w/]+\.py):([\w.]+)`", PAGE.read_text(encoding="utf-8"))
    assert len(places) > 30
    assert [f"{file}:{name}" for file, name in places if name not in names_in(ROOT / file)] == []


def test_every_room_is_on_the_page():
    text = PAGE.read_text(encoding="utf-8")
    rooms = [path.name for path in ROOT.iterdir() if path.is_dir() and (path / "__init__.py").exists()]
    assert [room for room in rooms if f"`{room}/`" not in text] == []
