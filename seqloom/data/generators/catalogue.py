"""`seqloom data NAME`: generated examples, a pure function of name, settings and seed.

A generator is a file of data/generators/ with a function of its own name, which takes a count, a seed and settings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from inspect import signature
from io import BytesIO
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, get_type_hints

import numpy as np

from seqloom.data.codecs.pictures import png
from seqloom.errors import SeqloomError, nearest, show
from seqloom.storage.files import replace_file
from seqloom.types import Example
from seqloom.values import check

Generator = Callable[..., list[Example]]


def generators() -> dict[str, Generator]:
    """Every generator by name."""
    files = sorted(file.name for file in iter_modules([str(Path(__file__).parent)]))
    modules = {name: import_module(f"seqloom.data.generators.{name}") for name in files if name != "catalogue"}
    return {name: vars(module)[name] for name, module in modules.items() if callable(vars(module).get(name))}


def list_generators() -> None:
    """Print the name, the description and the settings of each generator."""
    found = generators()
    width = max(map(len, found))
    for name, generator in found.items():
        about = (import_module(generator.__module__).__doc__ or "").partition("\n")[0]
        settings = ", ".join(f"{key} = {show(default)}" for key, default in settings_of(generator).items())
        print(f"{name:{width}}  {about}{f' ({settings})' * bool(settings)}")


def settings_of(generator: Generator) -> dict[str, Any]:
    """The settings of a generator and their defaults."""
    arguments = signature(generator).parameters
    return {name: argument.default for name, argument in arguments.items() if name not in ("count", "seed")}


def make_examples(name: str, count: int, seed: int, settings: dict[str, Any], skip: int = 0) -> list[Example]:
    """`count` examples after the first `skip`: of one seed, parts that do not overlap share no source."""
    known = generators()
    if name not in known:
        raise SeqloomError(f'no generator is called "{name}"{nearest(name, known)}')
    generator, hints = known[name], get_type_hints(known[name])
    for key, value in settings.items():
        if key not in settings_of(generator):
            raise SeqloomError(
                f"{key} = {show(value)}: unknown setting of {name}{nearest(key, settings_of(generator))}"
            )
        check(hints[key], value, f"{name}.{key}")
    return generator(skip + count, seed, **settings)[skip:]


def write_examples(path: Path, examples: list[Example], first: int = 0) -> None:
    """A file of examples. Pictures and films are files in a folder of its name beside it, numbered from `first`.

    The file itself is written last: where it is, everything is.
    """
    if sides := drawn_sides(examples):
        folder = path.parent / path.stem
        folder.mkdir(parents=True, exist_ok=True)
        named = []
        for number, example in enumerate(examples, first):
            paths: dict[str, Any] = {}
            for side in sides:
                suffix, content = as_file(getattr(example, side))
                (folder / f"{number:06}{suffix}").write_bytes(content)
                paths[side] = f"{folder.name}/{number:06}{suffix}"
            named.append(replace(example, **paths))
        examples = named
    replace_file(path, as_lines(examples).encode())


def drawn_sides(examples: list[Example]) -> list[str]:
    """The sides that are pictures or films."""
    kinds = (np.ndarray, dict)
    return [side for side in ("source", "target") if any(isinstance(getattr(each, side), kinds) for each in examples)]


def as_file(value: np.ndarray | dict[str, Any]) -> tuple[str, bytes]:
    """How the name of a file ends that holds a picture or a film, and its content."""
    if isinstance(value, np.ndarray):
        return ".png", png(value if value.ndim == 3 else value[:, :, None])
    file = BytesIO()
    np.savez_compressed(file, **value)
    return ".npz", file.getvalue()


def as_lines(examples: list[Example]) -> str:
    """The lines of a file: a source, a tab and a target, or the text of a language model."""
    if drawn_sides(examples):
        raise SeqloomError("these are pictures or films, which are written as files: name a table with --out")
    return "".join(
        f"{each.target}\n" if each.source is None else f"{each.source}\t{each.target}\n" for each in examples
    )
