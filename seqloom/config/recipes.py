"""Recipes as people write them: packaged ones, files, and single keys set on the command line."""

from __future__ import annotations

import copy
import tomllib
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

from seqloom.config.discovery import untrusted
from seqloom.errors import SeqloomError, nearest, one_line, show, under
from seqloom.storage.toml import read_toml

Recipe = dict[str, Any]


def packaged() -> dict[str, Path]:
    """The packaged recipes by name."""
    found = {path.stem: path for path in (Path(__file__).parent.parent / "recipes").glob("*.toml")}
    return dict(sorted(found.items()))


def describe(path: Path) -> str:
    """The first comment line of a recipe: what it is for."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return next((line.lstrip("#").strip() for line in lines if line.startswith("#")), "")


def read_recipe(name_or_path: str | Path, trust: bool = False) -> Recipe:
    """A recipe as written, by the name of a packaged one or by its path."""
    known = {name.replace("-", "_"): path for name, path in packaged().items()}
    name = str(name_or_path)
    path = known.get(name.replace("-", "_"), Path(name_or_path))
    if not path.exists() and path.suffix != ".toml" and len(path.parts) == 1:
        raise SeqloomError(f"{show(name)}: no such recipe, and no such file{nearest(name, packaged())}")
    recipe = read_toml(path)
    if not trust:
        refuse_own_parts(recipe, f"{path}: ")
    return recipe


def override(recipe: Recipe, assignments: list[str]) -> Recipe:
    """The recipe with some keys set: "train.tokens=2048", "decoder.attention.type=additive".

    Another type is another part, which starts from its own defaults; parts are set before what is in them. "none" takes
    a key out.
    """
    recipe = copy.deepcopy(recipe)
    for assignment in sorted(assignments, key=depth):
        key, equals, text = (piece.strip() for piece in assignment.partition("="))
        *tables, last = key.split(".")
        if not equals or not text or not all([*tables, last]):
            raise SeqloomError(f"{show(assignment)}: expected key=value, such as train.tokens=2048")
        table = recipe
        for level, name in enumerate(tables, start=1):
            if isinstance(table.get(name), str):
                table[name] = {"type": table[name]}
            table = table.setdefault(name, {})
            if not isinstance(table, dict):
                through = ".".join(tables[:level])
                raise SeqloomError(f"{key}={text}: {through} = {show(table)} is no table; set {through}={{...}} whole")
        value = value_of(text, assignment)
        if last == "type" and table.get("type", value) != value:
            table.clear()
        if text == "none":
            table.pop(last, None)
        else:
            table[last] = value
    return recipe


def depth(assignment: str) -> int:
    """How deep in the recipe a key is; setting a type counts as setting its part."""
    return assignment.partition("=")[0].strip().removesuffix(".type").count(".")


def value_of(text: str, assignment: str) -> Any:
    """A value as TOML reads it; anything else is a string, unless it begins like a TOML value."""
    try:
        parsed = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError as error:
        if text[0] in "[{\"'":
            raise SeqloomError(f"{show(assignment)}: not a TOML value: {one_line(error)}") from error
        return text
    # A recipe holds no dates: 2024-05-01 is the name of a file or folder.
    return text if len(parsed) > 1 or isinstance(parsed["value"], (date, datetime, time)) else parsed["value"]


def difference(old: Recipe, new: Recipe, prefix: str = "") -> list[str]:
    """The dotted keys in which two recipes differ."""
    keys = []
    for name in dict.fromkeys([*old, *new]):
        before, after = old.get(name), new.get(name)
        if isinstance(before, dict) and isinstance(after, dict):
            keys += difference(before, after, f"{prefix}{name}.")
        elif before != after:
            keys.append(f"{prefix}{name}")
    return keys


def refuse_own_parts(table: Recipe, key: str) -> None:
    """Refuse a recipe that names code outside Seqloom."""
    for name, value in table.items():
        if isinstance(value, dict):
            refuse_own_parts(value, under(key, name))
        elif name == "type" and ":" in str(value):
            raise untrusted(value, under(key, name))
