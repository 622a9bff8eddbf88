"""Which recipe a training follows: a given one, that of an earlier run, or one chosen from the data."""

from __future__ import annotations

import copy
import os
from pathlib import Path
from typing import Any

from seqloom.config.automatic import recipe_for
from seqloom.config.complete import complete, fill, sections
from seqloom.config.multi_task import name_tasks, tasks_of
from seqloom.config.recipes import Overrides, difference, override, read_recipe
from seqloom.data.lines import is_pipe, paths_of
from seqloom.data.readers import examples, reading_options
from seqloom.data.report import Report
from seqloom.data.survey import survey
from seqloom.errors import SeqloomError
from seqloom.storage.run import Run
from seqloom.train.display import Display

Data = Any  # a path, two paths of line-aligned files, or a list of pairs
Recipe = dict[str, Any]
LENGTH_OF_TEXT = 400  # tokens that a model of running text generates, unless the recipe sets another number
FROM_DATA = ("length_ratio", "length_offset")  # keys of the decoder that are set from the data


def task_names(run: Run | None, recipe: str | Path | Recipe | None, trust: bool) -> list[str]:
    """The names of the tasks that a training has; [""] if there is one."""
    if run is not None:
        found = run.recipe()
    elif recipe is None:
        return [""]
    else:
        found = recipe if isinstance(recipe, dict) else read_recipe(recipe, trust)
    tasks = name_tasks(found).get("tasks")
    return list(tasks) if isinstance(tasks, dict) and tasks else [""]


def choose_recipe(
    recipe: str | Path | Recipe | None, data: Data, settings: Overrides, trust: bool, display: Display
) -> tuple[Recipe, str]:
    """A recipe by name, path or content, that of the run to start from, or one that suits the data; and its origin."""
    if isinstance(recipe, dict):
        return recipe, "recipe"
    if recipe is not None:
        return read_recipe(recipe, trust), str(recipe)
    if data is None:
        raise SeqloomError("nothing to train on: give --data FILE, a recipe, or both")
    given = override({}, settings)
    if "init" in given:
        other = Run.open(str(given["init"]))
        origin = str(other.path / "config.toml")
        theirs = without_data(complete(other.recipe(), origin, trust))
        if "tasks" in theirs:
            raise SeqloomError(f"init = {other.path}: has several tasks; start from a run of one task")
        display.say(f"The recipe is that of {other.path}.")
        return theirs, origin
    reading = fill(sections()["data"], given.get("data", {}), "data", trust)
    try:
        choice = recipe_for(survey(examples(data, columns=2, **reading_options(reading))))
    except SeqloomError as error:
        if "not 1 column" in str(error):
            raise SeqloomError(
                f"{error}. For a language model name a recipe: text-lstm for a running text, char-lm for single lines"
            ) from None
        raise
    for line in (choice.saw, choice.chose, choice.alternative):
        display.say(line)
    return override(read_recipe(choice.recipe), choice.settings), choice.recipe


def initial_run(full: Recipe, trust: bool) -> Run:
    """Fine-tuning: the run to take vocabularies and weights from. Its codecs must be set as ours are."""
    run = Run.open(full["init"])
    other = complete(run.recipe(), str(run.path / "config.toml"), trust)
    if "tasks" in full or "tasks" in other:
        raise SeqloomError(f"init = {run.path}: starts a run of one task from a run of one task, and here are several")
    theirs = other["task"]
    if theirs["type"] != full["task"]["type"]:
        kinds = f'"{theirs["type"]}", not "{full["task"]["type"]}"'
        raise SeqloomError(
            f"init = {run.path}: its task.type is {kinds}; take a run of the same task, or give no recipe"
        )
    keys = difference(theirs, full["task"])
    if different := [key for key in keys if key.startswith(("source", "target", "joint"))]:
        raise SeqloomError(
            f"init = {run.path}: its recipe has another {', '.join(f'task.{key}' for key in different[:4])}, and its "
            f"weights belong to its own vocabularies: set these as in {run.path / 'config.toml'}, or give no recipe"
        )
    return run


def without_data(recipe: Recipe) -> Recipe:
    """The recipe of a run without its data and what was set from them."""
    recipe = copy.deepcopy({name: table for name, table in recipe.items() if name not in ("data", "init")})
    for name in FROM_DATA:
        recipe["decoder"].pop(name, None)
    return recipe


def add_data(full: Recipe, given: Recipe, name: str, data: Data, valid: Data, report: Report) -> None:
    """Complete a recipe from the data of a task: how long outputs may get, and which files to resume with.

    Lengths that were given stay. The only task of a recipe has the name "".
    """
    decoder, asked = tasks_of(full)[name]["decoder"], tasks_of(given)[name]["decoder"]
    own, ratio = full["tasks"][name] if name else full, report.length_ratio
    if tasks_of(full)[name]["task"]["type"] == "series":  # a sound is no longer because its source is
        ratio = 0.0
    lengths: Recipe = {}
    if "length_ratio" in decoder and "length_ratio" not in asked:
        lengths["length_ratio"] = round(ratio, 3)
    if ratio == 0 and "length_offset" in decoder and "length_offset" not in asked:  # a language model
        lengths["length_offset"] = LENGTH_OF_TEXT if report.running else report.longest_target + 1
    files: Recipe = {}
    for side, values in (("train", data), ("valid", valid)):
        paths = paths_of(values)
        if paths and not any(map(is_pipe, paths)):  # a pipe cannot be read again
            absolute = [os.path.abspath(path) for path in paths]  # a run may be resumed from another folder
            files[side] = absolute[0] if len(absolute) == 1 else absolute
    for key, table in (("decoder", lengths), ("data", files)):
        if table:
            own[key] = {**own.get(key, {}), **table}
