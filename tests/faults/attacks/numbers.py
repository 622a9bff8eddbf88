"""Hostile values for every key of every packaged recipe, for the search of a model, and for options of commands."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from seqloom.config.check import check_recipe
from seqloom.config.complete import complete
from seqloom.config.discovery import find, parameters
from seqloom.config.recipes import override, packaged, read_recipe
from seqloom.errors import SeqloomError
from tests.faults.command import seqloom
from tests.faults.untrained import untrained, untrained_run

SHORT, LONG = 50, 12_000
EVERY = 200  # one of so many is a command
SECONDS = 2.0
NAN, INFINITY = float("nan"), float("inf")
VALUES: list[Any] = [0, -1, 1e30, -1e30, 1e308, 1e-308, NAN, INFINITY, -INFINITY]
VALUES += [1000, 10**6, 10**12, 2**31, 2**63, -(2**63), 10**5000, 0.5, "x", "", "x" * 100_000, "\x1b[2J", True]
VALUES += [[], {}, [1] * 1000, {"type": "x"}, {"a": {"b": 1}}]
TEXTS = ["nan", "inf", "-inf", "1e308", "9" * 5000, "0x" + "f" * 5000, "[" * 3000, "[" * 20 + "]" * 20, "{a={a={a=1}}}"]
TEXTS += ["-0", "1_0", "'", '"', "none", "2024-05-01", "𝟙", "\x00", "1e999", "{}", "[]", "true"]
OPTIONS: list[list[str]] = [
    ["--threads", "100000"],
    ["--set", "beam_size=1e8"],
    ["--set", "beam_size=100000000"],
    ["--beam-size", "100000000"],
    ["--set", "length_penalty=1e308"],
    ["--n-best", "1000000000"],
    ["--threads", "9" * 5000],
    ["--beam-size", "-1"],
    ["--beam-size", "1000"],
    ["--set", "maximum_length=1000000000000"],
    ["--set", "minimum_length=1000000000000"],
    ["--set", "no_repeat=1000000000000"],
    ["--set", ".".join("a" * 3000) + "=1"],
    ["--set", f"{'x' * 100_000}=1"],
    ["--set", "type=sample", "--set", "temperature=1e-300"],
    ["--set", "type=sample", "--set", "n_best=1000000000"],
    ["--set", "type=sample", "--set", "seed=-1"],
    ["--set", "type=sample", "--set", f"seed={2**63}"],
    ["--set", "type=sample", "--set", "top_p=nan"],
    ["--wait", "1000000000000"],
    ["--max-characters", "1000000000000"],
    ["--rescore-weight", "nan"],
    ["--device", "x" * 1000],
]


def attack(number: int, folder: Path) -> str | None:
    if number % EVERY == 0:
        options = OPTIONS[number // EVERY % len(OPTIONS)]
        return seqloom("predict", untrained_run("recurrent", folder), *options, folder=folder, stdin=b"abc\n").problem()
    chance = random.Random(number)
    keys()  # once, before time is taken
    began = time.process_time()
    try:
        chance.choice((recipe_key, recipe_key, recipe_key, recipe_text, search_setting))(chance, folder)
    except SeqloomError as error:
        if "\n" in str(error) or len(str(error)) > 1000:
            return f"not one line: {str(error)[:200]!r}"
    seconds = time.process_time() - began
    return f"took {seconds:.1f} s" if seconds > SECONDS else None


def recipe_key(chance: random.Random, folder: Path) -> None:
    """A value of Python for a key of a recipe; where that is well, all parts are built without memory."""
    name, key = chance.choice(keys())
    changed = override(completed(name), {key: chance.choice(VALUES)})
    check_recipe(complete(changed, name))


def recipe_text(chance: random.Random, folder: Path) -> None:
    """A value as text, in --set or in a file."""
    name, key = chance.choice(keys())
    text = chance.choice(TEXTS)
    if chance.random() < 0.5:
        check_recipe(complete(override(completed(name), f"{key}={text}"), name))
        return
    path = folder / "recipe.toml"
    deep = [f"[{'.'.join('a' * 3000)}]", f"a = {'[' * 3000}"]
    path.write_text(chance.choice([f"{key} = {text}", *deep]), encoding="utf-8")
    check_recipe(complete(read_recipe(path), str(path)))


def search_setting(chance: random.Random, folder: Path) -> None:
    """A setting of a search, and a prediction with it."""
    model = untrained(chance.choice(("recurrent", "ctc")))
    kind = "prefix_beam" if model.model.decoder.blanks else chance.choice(("beam", "sample"))
    setting = chance.choice(list(parameters(find("search", kind, "search.type"))))
    value = chance.choice(VALUES)
    if setting == "minimum_length" and value in (1000, 10**6):
        return  # allowed, and what was asked for takes its time
    model.predict(["abc"], **{"type": kind, setting: value})


@cache
def completed(name: str) -> dict[str, Any]:
    return complete(read_recipe(name), name)


@cache
def keys() -> list[tuple[str, str]]:
    """Every key once for each part that has it: (a recipe, the dotted key)."""
    found: dict[tuple[str, ...], tuple[str, str]] = {}
    for name in packaged():
        for key, types in leaves(completed(name)):
            found.setdefault((key, *types), (name, key))
    return list(found.values())


def leaves(
    table: dict[str, Any], prefix: str = "", types: tuple[str, ...] = ()
) -> Iterator[tuple[str, tuple[str, ...]]]:
    types = (*types, str(table.get("type", "")))
    for name, value in table.items():
        if isinstance(value, dict):
            yield f"{prefix}{name}", types  # the table itself may be replaced too
            yield from leaves(value, f"{prefix}{name}.", types)
        else:
            yield f"{prefix}{name}", types
