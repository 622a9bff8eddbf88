"""Recipes of several tasks: `[[task]]` tables, each with a name, in place of one `[task]`.

A completed recipe has them as `tasks.NAME`, so that `--set tasks.NAME.share=2` changes one. Beside the keys of its task
a table may have `share`, and tables `encoder`, `decoder`, `search`, `objective` and `data` whose keys differ from those
that all tasks have in common. Each task has a plain recipe of its own: `tasks_of`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from seqloom.errors import SeqloomError, nearest, show

Recipe = dict[str, Any]
OWN = ("encoder", "decoder", "search", "objective", "data")  # tables that a task may change
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")  # also the name of a folder
EXPECTED = "letters, digits, - and _, at most 40"


def name_tasks(recipe: Recipe, where: str = "recipe") -> Recipe:
    """The recipe with its `[[task]]` tables as `tasks.NAME`; any other recipe as it is."""
    tables = recipe.get("task")
    if not isinstance(tables, list):
        return recipe
    if "tasks" in recipe:
        raise SeqloomError(f"{where}: it has tables [[task]] and [tasks.NAME]; write all in one way")
    named: dict[str, Any] = {}
    for number, table in enumerate(tables, start=1):
        if not isinstance(table, dict) or "name" not in table:
            raise SeqloomError(
                f'{where}: task {number}: expected a table [[task]] with a name, such as name = "letters"'
            )
        if table["name"] in named:
            raise SeqloomError(f"{where}: two tasks are called {show(table['name'])}; give each a name of its own")
        named[table["name"]] = {key: value for key, value in table.items() if key != "name"}
    return {**{key: value for key, value in recipe.items() if key != "task"}, "tasks": named}


def check_tasks(recipe: Recipe, where: str) -> None:
    """Refuse names and shares that cannot be used, and a recipe that has both one task and several."""
    tasks = recipe["tasks"]
    if not isinstance(tasks, dict) or not tasks:
        raise SeqloomError(f"{where}: tasks = {show(tasks)}: expected a table for each task")
    if "task" in recipe:
        raise SeqloomError(f"{where}: it has [task] and several tasks; make [task] one of them, with a name")
    for name, table in tasks.items():
        if not NAME.fullmatch(str(name)):
            raise SeqloomError(f"{where}: a task is called {show(name)}; expected {EXPECTED}")
        if not isinstance(table, dict):
            raise SeqloomError(f"{where}: tasks.{name} = {show(table)}: expected a table")
        share = table.get("share", 1.0)
        if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share < 1e6:
            raise SeqloomError(f"{where}: tasks.{name}.share = {show(share)}: expected a number above 0")


def tasks_of(recipe: Recipe) -> dict[str, Recipe]:
    """The plain recipe of each task by name; that of a recipe with one task has the name ""."""
    if "tasks" not in recipe:
        return {"": recipe}
    common = {key: value for key, value in recipe.items() if key != "tasks"}
    return {name: recipe_of_task(common, name, table) for name, table in recipe["tasks"].items()}


def recipe_of_task(common: Recipe, name: str, table: Recipe) -> Recipe:
    """The recipe of one task: what all have in common, changed by its own tables."""
    own = {key: merge(common.get(key), table[key]) for key in OWN if key in table}
    task = {key: value for key, value in table.items() if key not in (*OWN, "share")}
    found = {**common, **own, "task": task}
    train = dict(found.get("train", {}))
    if select_by := train.get("select_by"):
        ours, _, metric = str(select_by).rpartition("/")
        train["select_by"] = metric if ours == name else ""
        found["train"] = train
    return found


def merge(common: Any, own: Any) -> Any:
    """A table with some keys changed; another type starts anew."""
    if (
        not isinstance(common, dict)
        or not isinstance(own, dict)
        or own.get("type", common.get("type")) != common.get("type")
    ):
        return own
    return {**common, **own}


def share_of(recipe: Recipe, name: str) -> float | None:
    """How many batches a task gets in proportion to others; None: as many as its data has."""
    share: float | None = recipe["tasks"][name].get("share")
    return share


def choose_task(names: Iterable[str], name: str, where: str) -> str:
    """The task that is meant; one line where that is unclear or wrong."""
    known = list(names)
    if known == [""]:
        if name:
            raise SeqloomError(f"{where} has one task, which has no name: leave out the task {show(name)}")
        return ""
    if not name:
        example = f'--task {known[0]}, in Python for_task("{known[0]}")'
        raise SeqloomError(f"{where} has several tasks ({', '.join(known)}): name one, {example}")
    if name not in known:
        raise SeqloomError(f"{where} has no task {show(name)}{nearest(name, known)}")
    return name


def data_by_task(names: Iterable[str], data: Any, option: str = "--data") -> dict[str, Any]:
    """What was given for each task, None for nothing: by a mapping, or as on the command line, NAME=FILE.

    Where there is one task, which has no name, all is its.
    """
    known = list(names)
    if known == [""]:
        return {"": data}
    given = list(data.items()) if isinstance(data, Mapping) else []
    if not isinstance(data, Mapping) and data is not None:
        for each in [data] if isinstance(data, (str, Path)) else data:
            name, equals, path = str(each).partition("=")
            if not equals:
                hint = f"say whose file it is, {option} {known[0]}={each}"
                raise SeqloomError(f"{option} {show(str(each))}: this recipe has several tasks; {hint}")
            given.append((name, path))
    files: dict[str, list[Any]] = {}
    for name, value in given:
        if name not in known:
            raise SeqloomError(f"{option} {name}=...: the recipe has no task of this name{nearest(str(name), known)}")
        files.setdefault(name, []).append(value)
    return {
        name: None if name not in files else files[name][0] if len(files[name]) == 1 else files[name] for name in known
    }
