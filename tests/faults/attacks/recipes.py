"""Recipes as TOML files with random damage, or with tables and lines of other recipes, and such settings on top."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

import tomli_w

from seqloom.config.check import check_recipe
from seqloom.config.complete import complete
from seqloom.config.recipes import override, packaged, read_recipe
from tests.faults.calls import problem_of
from tests.faults.command import seqloom
from tests.faults.damage import toml_changes
from tests.faults.texts import FRAGMENTS, damaged

SHORT, LONG = 150, 16_000
EVERY = 800  # one of so many is a command


def attack(number: int, folder: Path) -> str | None:
    chance = random.Random(number)
    path = folder / "recipe.toml"
    change = chance.choice(CHANGES)
    change(path, chance)
    if number % EVERY == 1:
        return seqloom("check", path, folder=folder).problem()
    settings = [setting(chance) for _ in range(chance.choice((0, 0, 0, 1, 2)))]

    def check() -> None:
        full = complete(override(read_recipe(path), settings), str(path))
        check_recipe(full)
        tomli_w.dumps(full)

    whole(chance.choice(list(packaged())))  # parts are imported before time is taken
    problem = problem_of(check)
    return problem and f"{change.__name__}, {settings}: {problem}"


@cache
def whole(name: str) -> bytes:
    """A packaged recipe, which must be well."""
    check_recipe(complete(read_recipe(name), name))
    return packaged()[name].read_bytes()


def any_recipe(chance: random.Random) -> bytes:
    return packaged()[chance.choice(list(packaged()))].read_bytes()


def other_bytes(path: Path, chance: random.Random) -> None:
    path.write_bytes(damaged(any_recipe(chance), chance))


def other_values(path: Path, chance: random.Random) -> None:
    path.write_bytes(any_recipe(chance))
    for _ in range(chance.randint(1, 3)):
        toml_changes(path, chance)


def tables_of_others(path: Path, chance: random.Random) -> None:
    """Parts that were not made for each other."""
    recipe = read_recipe(chance.choice(list(packaged())))
    for _ in range(chance.randint(1, 3)):
        other = read_recipe(chance.choice(list(packaged())))
        key = chance.choice(list(other))
        recipe[key] = other[key]
    path.write_text(tomli_w.dumps(recipe))


def lines_of_others(path: Path, chance: random.Random) -> None:
    lines = any_recipe(chance).split(b"\n")
    for _ in range(chance.randint(1, 5)):
        lines[chance.randrange(len(lines))] = chance.choice(any_recipe(chance).split(b"\n"))
    path.write_bytes(b"\n".join(lines))


def setting(chance: random.Random) -> str:
    """Of --set: a line of a recipe, with any damage that a command line can hold."""
    line = chance.choice(any_recipe(chance).split(b"\n"))
    if chance.random() < 0.7:
        line = damaged(line, chance) if chance.random() < 0.5 else line.split(b"=")[0] + b"=" + chance.choice(FRAGMENTS)
    table = chance.choice(("", "encoder.", "decoder.", "train.", "task.source.", "search."))
    return table + line.decode(errors="surrogateescape").replace("\0", "")


CHANGES = (other_bytes, other_bytes, other_values, tables_of_others, lines_of_others)
