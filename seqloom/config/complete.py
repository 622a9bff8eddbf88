"""A recipe with every default filled in, its keys and types checked.

`type` names a file of a folder, every other key is an argument of that part's constructor. A completed recipe has
every default written out, so a run that keeps it does not change when a default does.
"""

from __future__ import annotations

from typing import Any

from seqloom import metrics
from seqloom.config.assemble import Section
from seqloom.config.bounds import check_bounds
from seqloom.config.discovery import Parameter, as_table, find, one, parameters, parts, slot, word
from seqloom.config.multi_task import OWN, check_tasks, name_tasks, tasks_of
from seqloom.config.recipes import Recipe
from seqloom.config.settings import Data, Settings, build_data, build_settings
from seqloom.errors import SeqloomError, nearest, show, under
from seqloom.values import ABSENT, check, plain

FROM_DATA = (
    "vocabulary",
    "features",
    "shape",
    "canvas",
    "frames",
    "inputs",
    "pad",
    "bos",
    "eos",
    "blank",
    "unk",
    "written",
    "source_vocabulary",
    "source_features",
)  # arguments that are derived from the data rather than from a neighbouring part
OF = {
    "vocabulary": "tokens",
    "features": "vectors",
    "shape": "pictures",
    "canvas": "pixels",
    "frames": "films",
}  # what a side that has it is made of
OF_SOURCE = ("source_vocabulary", "source_features")


def sections() -> dict[str, Parameter]:
    """The top level of a recipe, in the order it is written."""
    from seqloom.contracts import Decoder, Encoder, Objective, Search, Task

    return {
        "seed": Parameter(int, 1),
        "init": Parameter(str | None, None),
        "share_embeddings": Parameter(bool, False),
        "objective": Parameter(Objective, {"type": "cross_entropy"}),
        "search": Parameter(Search, {"type": "beam"}),
        "task": Parameter(Task, {"type": "pairs"}),
        "encoder": Parameter(Encoder | None, None),
        "decoder": Parameter(Decoder),
        "train": Parameter(Section(Settings), {}),
        "data": Parameter(Section(Data), {}),
    }


def complete(recipe: Recipe, where: str, trust: bool = False) -> Recipe:
    """The recipe, checked, with every default filled in. Errors name the file `where`."""
    recipe = name_tasks(recipe, where)
    if "tasks" in recipe:
        return complete_tasks(recipe, where, trust)
    full = fill_table(sections(), recipe, f"{where}: ", "a recipe", trust, derive=False)
    if ("encoder" in full) != ("source" in full["task"]):
        there, missing = ("encoder", "task.source") if "encoder" in full else ("task.source", "encoder")
        raise SeqloomError(f"{where}: {missing}: missing, but {there} is set (a language model has neither)")
    if full["seed"] < 0:
        raise SeqloomError(f"{where}: seed = {full['seed']}: expected 0 or more")
    if "metrics" in full["task"]:
        full["task"]["metrics"] = [metric_name(name, where) for name in full["task"]["metrics"]]
    try:
        build_settings(full)  # checks its own values
        build_data(full)
    except SeqloomError as error:
        raise SeqloomError(f"{where}: {error}") from error
    return full


def complete_tasks(recipe: Recipe, where: str, trust: bool) -> Recipe:
    """A recipe of several tasks: what they have in common, and each task with what is its own."""
    check_tasks(recipe, where)
    tasks: Recipe = {}
    for name, single in tasks_of(recipe).items():
        full = complete(single, f"{where}: tasks.{name}", trust)
        own = {key: value for key, value in recipe["tasks"][name].items() if key in (*OWN, "share")}
        tasks[name] = {**own, **full["task"]}
    common = {key: value for key, value in recipe.items() if key != "tasks"}
    shared = complete({**common, "task": full["task"]}, where, trust)
    known = [f"{name}/{each}" for name, table in tasks.items() for each in ("loss", *table.get("metrics", []))]
    if (select_by := shared["train"]["select_by"]) not in ("", "loss", *known):
        raise SeqloomError(f"{where}: train.select_by = {show(select_by)}: not measured{nearest(select_by, known)}")
    return {**{key: value for key, value in shared.items() if key != "task"}, "tasks": tasks}


def metric_name(name: str, where: str) -> str:
    """The name of a metric, that is of a file of metrics/."""
    if name.replace("-", "_") not in metrics.names():
        raise SeqloomError(f"{where}: task.metrics = {show(name)}: no such metric{nearest(name, metrics.names())}")
    return name.replace("-", "_")


def fill(parameter: Parameter, value: Any, key: str, trust: bool) -> Any:
    """One value as a completed recipe has it."""
    annotation = parameter.annotation
    if isinstance(annotation, Section):
        return fill_table(
            parameters(annotation.constructor), value, key, f"[{key.rpartition(': ')[2]}]", trust, derive=False
        )
    place = slot(annotation)
    if place is None:
        checked = check(annotation, value, key)
        check_bounds(key.rpartition(".")[2], checked, key)
        return plain(annotation, checked)
    if place.table:
        if not isinstance(value, dict):
            raise SeqloomError(f"{key} = {show(value)}: expected a table of {word(place.kind)}s by name")
        return {name: fill_part(place.kind, each, under(key, name), trust) for name, each in value.items()}
    default = as_table(place.kind, parameter.default)
    return fill_part(place.kind, as_table(place.kind, value), key, trust, default)


def fill_part(kind: str, value: Any, key: str, trust: bool, default: Any = None) -> Recipe:
    """The table of a part; without a type, the default's type is meant."""
    table = {"type": value} if isinstance(value, str) else value
    if not isinstance(table, dict):
        raise SeqloomError(f"{key} = {show(value)}: expected the name or the table of {one(kind)}")
    if "type" not in table and isinstance(default, dict):
        table = {**default, **table}
    if "type" not in table:
        raise SeqloomError(f"{key}.type: missing, expected the name of {one(kind)}{nearest('', parts(kind))}")
    part = find(kind, table["type"], f"{key}.type", trust)
    name = table["type"] if ":" in table["type"] else table["type"].replace("-", "_")
    rest = {name: value for name, value in table.items() if name != "type"}
    return {"type": name, **fill_table(parameters(part), rest, key, f"{word(kind)} {show(name)}", trust)}


def fill_table(
    known: dict[str, Parameter], table: Any, key: str, owner: str, trust: bool, derive: bool = True
) -> Recipe:
    """A table with every default. With `derive`, arguments without a default are derived, except for parts."""
    if not isinstance(table, dict):
        raise SeqloomError(f"{key} = {show(table)}: expected a table")
    derived = {
        name
        for name, parameter in known.items()
        if derive and is_derived(name, parameter) and not slot(parameter.annotation)
    }
    for name, value in table.items():
        if name not in known:
            hint = nearest(name, set(known) - derived)
            raise SeqloomError(f"{under(key, name)} = {show(value)}: unknown key of {owner}{hint}")
        if name in derived:
            origin = "the data" if name in FROM_DATA else "its neighbour"
            raise SeqloomError(f"{under(key, name)} = {show(value)}: derived from {origin}, take it out of the recipe")
    full = {}
    for name, parameter in known.items():
        if name in table:
            full[name] = fill(parameter, table[name], under(key, name), trust)
        elif parameter.default is not ABSENT and parameter.default is not None:
            full[name] = fill(parameter, parameter.default, under(key, name), trust)
        elif parameter.default is ABSENT and name not in derived:
            raise SeqloomError(f"{under(key, name)}: missing, {owner} needs it")
    return full


def is_derived(name: str, parameter: Parameter) -> bool:
    """Whether an argument is derived: it has no default, or is a fact that only some data have."""
    return parameter.default is ABSENT or (parameter.default is None and name in (*OF, *OF_SOURCE))
