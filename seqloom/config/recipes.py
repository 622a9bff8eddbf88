"""Recipes as people write them: packaged ones, files, and single keys set on the command line."""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

from seqloom.config.discovery import untrusted
from seqloom.config.multi_task import name_tasks
from seqloom.errors import SeqloomError, nearest, one_line, show, under
from seqloom.storage.files import DEEPEST, check_plain
from seqloom.storage.toml import parse_toml, read_toml

Recipe = dict[str, Any]
Overrides = str | Mapping[str, Any] | Iterable[str | Mapping[str, Any]]  # "key=value", {"key": value}, or several


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
    recipe = name_tasks(read_toml(path, own=True), str(path))
    if not trust:
        refuse_own_parts(recipe, f"{path}: ")
    return recipe


def override(recipe: Recipe, settings: Overrides) -> Recipe:
    """The recipe with some keys set: "train.tokens=2048", or {"train.tokens": 2048, "decoder": {"dropout": 0.1}}.

    Another type is another part, which starts from its own defaults; parts are set before what is in them. "none", in
    Python None, takes a key out.
    """
    refuse_deep(recipe, "recipe")
    recipe = name_tasks(copy.deepcopy(recipe))
    for each in sorted(assignments(settings), key=lambda each: each.depth):
        *tables, last = each.key.split(".")
        table = recipe
        for level, name in enumerate(tables, start=1):
            if isinstance(table.get(name), str):
                table[name] = {"type": table[name]}
            table = table.setdefault(name, {})
            if not isinstance(table, dict):
                through = ".".join(tables[:level])
                raise SeqloomError(
                    f"{each.key}={each.text}: {through} = {show(table)} is no table; set {through}={{...}} whole"
                )
        if last == "type" and table.get("type", each.value) != each.value:
            table.clear()
        if each.value is None:
            table.pop(last, None)
        else:
            table[last] = each.value
    return recipe


@dataclass(frozen=True)
class Assignment:
    """One key of a recipe and the value to set it to; None takes it out."""

    key: str  # dotted
    value: Any
    text: str  # the value as it was written, for errors

    @property
    def depth(self) -> int:
        """How deep in the recipe the key is; setting a type counts as setting its part."""
        return self.key.removesuffix(".type").count(".")


def as_list(settings: Overrides) -> list[str | Mapping[str, Any]]:
    """Settings as a list, to which more can be added."""
    is_one = isinstance(settings, (str, Mapping)) or not isinstance(settings, Iterable)
    return [settings] if is_one else list(settings)  # type: ignore[list-item]  # mypy does not follow is_one


def assignments(settings: Overrides) -> Iterator[Assignment]:
    """Settings one by one: "key=value" strings, tables with dotted or nested keys, or several of either."""
    if isinstance(settings, str):
        key, equals, text = (piece.strip() for piece in settings.partition("="))
        if not equals or not text or not all(key.split(".")):
            raise SeqloomError(f"{show(settings)}: expected key=value, such as train.tokens=2048")
        refuse_deep([], key)
        yield Assignment(key, None if text == "none" else value_of(text, settings), text)
    elif isinstance(settings, Mapping):
        yield from entries(settings)
    elif isinstance(settings, Iterable):
        for each in settings:
            yield from assignments(each)
    else:
        raise SeqloomError(f'settings: {show(settings)}: expected "key=value", or a dictionary of keys and values')


def entries(table: Mapping[str, Any], prefix: str = "") -> Iterator[Assignment]:
    """The settings of a dictionary. A table within it is merged into the recipe's; an empty one is a value."""
    refuse_deep([], prefix)
    for name, value in table.items():
        if not isinstance(name, str) or not all(name.split(".")):
            raise SeqloomError(f"settings: {show(name)}: expected the name of a key, such as train.tokens")
        if isinstance(value, Mapping) and value:
            yield from entries(value, f"{prefix}{name}.")
            continue
        if getattr(value, "ndim", None) == 0:  # a number of numpy or torch
            value = value.item()
        refuse_deep([value], f"{prefix}{name}")
        yield Assignment(f"{prefix}{name}", copy.deepcopy(value), show(value))


def refuse_deep(content: Any, key: str) -> None:
    """Refuse a dotted key, or what is under it, that is nested deeper than any recipe, or no recipe could say."""
    try:
        if key.count(".") > DEEPEST:
            raise ValueError(f"nested more than {DEEPEST} levels deep")
        check_plain(content)
    except ValueError as error:
        raise SeqloomError(f"{show(key)}: {error}; no recipe has that") from None


def value_of(text: str, assignment: str) -> Any:
    """A value as TOML reads it; anything else is a string, unless it begins like a TOML value."""
    try:
        parsed = parse_toml(f"value = {text}")
    except ValueError as error:
        if text[0] in "[{\"'" or not isinstance(error, tomllib.TOMLDecodeError):  # of thousands of digits or levels
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
