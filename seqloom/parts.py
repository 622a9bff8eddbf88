"""Parts found by folder and name, what their constructors take, and parts built from their tables.

The name of a part is the name of its file: `decoders`, `recurrent` is the one public subclass of Decoder in
seqloom/decoders/recurrent.py. There is no registry; adding a file adds a part. A part is imported when it is asked for.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import Parameter as Argument
from inspect import isabstract, signature
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from seqloom.errors import SeqloomError, nearest

CONTRACTS = {
    "cells": "Cell",
    "attention": "Attention",
    "encoders": "Encoder",
    "decoders": "Decoder",
    "objectives": "Objective",
    "search": "Search",
    "data": "Codec",
    "tasks": "Task",
}
ABSENT = Argument.empty  # the default of a parameter without one
WORDS = {int: "an integer", float: "a number", str: "a string", Path: "a path", bool: "true or false"}


def contract(folder: str) -> type:
    """What every part of the folder is a subclass of."""
    from seqloom import plain_contracts

    name = CONTRACTS[folder]
    if hasattr(plain_contracts, name):
        return getattr(plain_contracts, name)
    from seqloom import contracts  # imports torch

    return getattr(contracts, name)


def kind(folder: str) -> str:
    """What one part of the folder is called in a sentence."""
    return CONTRACTS[folder].lower()


def one(folder: str) -> str:
    """The kind with its article."""
    return f"{'an' if kind(folder)[0] in 'aeiou' else 'a'} {kind(folder)}"


def files(folder: str) -> list[str]:
    """The names of the files of a folder; not all need hold a part."""
    package = importlib.import_module(f"seqloom.{folder}")
    modules = pkgutil.iter_modules(package.__path__)
    return sorted(module.name for module in modules if not module.ispkg and not module.name.startswith("_"))


def parts(folder: str) -> dict[str, type]:
    """Every part of a folder by name."""
    found = {name: part_of_file(folder, name) for name in files(folder)}
    return {name: part for name, part in found.items() if part is not None}


def part_of_file(folder: str, name: str) -> type | None:
    """The one public part a file defines, if it defines one. What is abstract is only shared by parts."""
    module = importlib.import_module(f"seqloom.{folder}.{name}")
    found = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and value.__module__ == module.__name__ and not value.__name__.startswith("_")
        if issubclass(value, contract(folder)) and not isabstract(value)
    ]
    if len(found) > 1:
        names = ", ".join(part.__name__ for part in found)
        raise SeqloomError(f"seqloom/{folder}/{name}.py: expected one public {kind(folder)}, found {names}")
    return found[0] if found else None


def find(folder: str, name: str, key: str, trust: bool = False) -> type:
    """The part of that name; `module:Class` is a part of the user's own, imported only under trust."""
    if not isinstance(name, str):
        raise SeqloomError(f"{key} = {show(name)}: expected the name of {one(folder)}")
    if ":" in name:
        return find_own(folder, name, key, trust)
    stem = name.replace("-", "_")
    part = part_of_file(folder, stem) if stem in files(folder) else None
    if part is None:
        raise SeqloomError(f"{key} = {show(name)}: no such {kind(folder)}{nearest(stem, parts(folder))}")
    return part


def find_own(folder: str, name: str, key: str, trust: bool) -> type:
    """A part of the user's own. Importing it runs its code, hence the question of trust."""
    if not trust:
        raise untrusted(name, key)
    module, _, attribute = name.partition(":")
    try:
        part = getattr(importlib.import_module(module), attribute)
    except Exception as error:  # anything may happen while a user's module runs
        reason = f"{type(error).__name__}: {one_line(error)}"
        raise SeqloomError(f"{key} = {show(name)}: cannot be imported as module:Class ({reason})") from error
    if not isinstance(part, type) or not issubclass(part, contract(folder)):
        raise SeqloomError(f"{key} = {show(name)}: expected a subclass of seqloom.contracts.{CONTRACTS[folder]}")
    return part


def untrusted(name: str, key: str) -> SeqloomError:
    """Why a part of the user's own is refused."""
    return SeqloomError(
        f"{key} = {show(name)}: names code outside Seqloom; trust it (--trust, or trust=True) or choose another part"
    )


def as_table(folder: str, part: Any) -> Any:
    """A default of a constructor as a recipe writes it: LSTM becomes {"type": "lstm"}; plain values stay."""
    if isinstance(part, partial):
        return {**as_table(folder, part.func), **part.keywords}
    if isinstance(part, type):
        house, _, name = part.__module__.rpartition(".")
        ours = house == f"seqloom.{folder}" and part_of_file(folder, name) is part
        return {"type": name if ours else f"{part.__module__}:{part.__qualname__}"}
    return part


@dataclass(frozen=True)
class Parameter:
    """One argument of a constructor."""

    annotation: Any
    default: Any = ABSENT


def parameters(constructor: Any) -> dict[str, Parameter]:
    """The arguments of a constructor by name, in the order of its signature."""
    source = constructor if dataclasses.is_dataclass(constructor) else constructor.__init__
    try:
        hints = get_type_hints(source, include_extras=True)
    except NameError as error:
        raise SeqloomError(
            f"{constructor.__module__}.{constructor.__qualname__}: {error} in its annotations"
        ) from error
    defaults = {}
    if dataclasses.is_dataclass(constructor):
        makers = {field.name: field.default_factory for field in dataclasses.fields(constructor)}
        defaults = {name: maker() for name, maker in makers.items() if maker is not dataclasses.MISSING}
    return {
        name: Parameter(hints.get(name, Any), defaults.get(name, argument.default))
        for name, argument in signature(constructor).parameters.items()
        if argument.kind not in (Argument.VAR_POSITIONAL, Argument.VAR_KEYWORD)
    }


@dataclass(frozen=True)
class Slot:
    """Where a constructor takes a part: built, or a factory its owner calls with the sizes it alone knows."""

    folder: str
    factory: bool = False


def slot(annotation: Any) -> Slot | None:
    """What part an annotation asks for, if it asks for one: Codec, Callable[..., Cell] | None."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        return next((found for found in map(slot, arguments) if found), None)
    if origin is Callable and arguments:
        inner = slot(arguments[-1])
        return inner and Slot(inner.folder, factory=True)
    if isinstance(annotation, type):
        # Known by name: to ask `issubclass` of all contracts would import torch.
        houses = ("seqloom.contracts", "seqloom.plain_contracts")
        names = {base.__name__ for base in annotation.__mro__ if base.__module__ in houses}
        return next((Slot(folder) for folder, name in CONTRACTS.items() if name in names), None)
    return None


@dataclass(frozen=True)
class Section:
    """The annotation of a table without a type: its keys are the arguments of one constructor."""

    constructor: Callable[..., Any]


def assemble(annotation: Any, value: Any, key: str, trust: bool) -> Any:
    """The argument a completed value stands for."""
    if isinstance(annotation, Section):
        return call(annotation.constructor, key, arguments(annotation.constructor, value, key, trust))
    place = slot(annotation)
    if place is None:
        return check(annotation, value, key)
    return assemble_part(place.folder, value, key, trust, factory=place.factory)


def assemble_part(
    folder: str, table: dict[str, Any], key: str, trust: bool, factory: bool = False, **given: Any
) -> Any:
    """The part of a completed table, or what its owner calls to make it."""
    constructor = find(folder, table["type"], f"{key}.type", trust)
    values = arguments(constructor, table, key, trust)
    if factory:
        return partial(constructor, **values) if values else constructor
    return call(constructor, key, {**values, **given})


def arguments(constructor: Callable[..., Any], table: dict[str, Any], key: str, trust: bool) -> dict[str, Any]:
    return {
        name: assemble(parameter.annotation, table[name], under(key, name), trust)
        for name, parameter in parameters(constructor).items()
        if name in table
    }


def call(constructor: Callable[..., Any], key: str, values: dict[str, Any]) -> Any:
    """Construct. Types are right by now, so what a constructor complains of is a value of the recipe."""
    try:
        return constructor(**values)
    except (TypeError, ValueError, ArithmeticError, AssertionError, RuntimeError) as error:
        raise SeqloomError(f"{key}: {one_line(error)}") from error


def check(annotation: Any, value: Any, key: str) -> Any:
    """A plain value as its constructor wants it. An integer may stand for a number; nothing else is converted."""
    if (found := understood(annotation, value)) is not ABSENT:
        return found
    from pydantic import PydanticSchemaGenerationError, TypeAdapter, ValidationError

    try:
        # As JSON, because there a list may stand for a tuple and a string for a path, and all else stays strict.
        return TypeAdapter(annotation).validate_json(json.dumps(value, default=os.fspath), strict=True)
    except ValidationError as error:
        reason = f"expected {expected(annotation)}{choices(annotation, value)}"
        if get_origin(annotation) is Annotated:  # bounds, which pydantic words well
            reason = error.errors()[0]["msg"]
        raise SeqloomError(f"{key} = {show(value)}: {reason}") from error
    except (TypeError, PydanticSchemaGenerationError) as error:
        raise SeqloomError(f"{key} = {show(value)}: expected {expected(annotation)}") from error


def understood(annotation: Any, value: Any) -> Any:
    """A value whose type is plainly right; ABSENT where pydantic must tell, which takes long to import."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        found = (understood(one, value) for one in arguments)
        return next((each for each in found if each is not ABSENT), ABSENT)
    if origin is tuple and isinstance(value, (list, tuple)):
        kinds = arguments[:1] * len(value) if arguments[1:] == (...,) else arguments
        items = tuple(understood(kind, each) for kind, each in zip(kinds, value))
        return ABSENT if ABSENT in items or len(kinds) != len(value) else items
    if origin in (dict, Mapping) and isinstance(value, Mapping):
        table = {understood(arguments[0], key): understood(arguments[1], each) for key, each in value.items()}
        return ABSENT if ABSENT in (*table, *table.values()) else table
    if origin is Literal:
        return value if any(type(one) is type(value) and one == value for one in arguments) else ABSENT
    if annotation is float and type(value) is int:
        return float(value)
    return value if annotation in (bool, int, float, str, NoneType) and type(value) is annotation else ABSENT


def plain(annotation: Any, value: Any) -> Any:
    """A checked value as TOML writes it: tuples as lists, paths as strings."""
    if (found := understood(annotation, value)) is not ABSENT:
        return list(found) if isinstance(found, tuple) else found
    from pydantic import TypeAdapter

    return TypeAdapter(annotation).dump_python(value, mode="json")


def expected(annotation: Any) -> str:
    """The annotation in words."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return f"{'one of ' if len(arguments) > 1 else ''}{', '.join(map(show, arguments))}"
    if origin in (Union, UnionType):
        return " or ".join(expected(one) for one in arguments if one is not NoneType)
    if origin in (list, Sequence) or (origin is tuple and arguments[1:] == (...,)):
        return f"a list, each {expected(arguments[0])}"
    if origin is tuple:
        return f"a list of {len(arguments)}: {', '.join(map(expected, arguments))}"
    if origin in (dict, Mapping):
        return f"a table, each value {expected(arguments[1])}"
    return WORDS.get(annotation, f"a {getattr(annotation, '__name__', annotation)}")


def choices(annotation: Any, value: Any) -> str:
    """The nearest of the choices for a misspelt one, where something is near."""
    options = get_args(annotation) if get_origin(annotation) is Literal else ()
    hint = nearest(value, options) if isinstance(value, str) and all(isinstance(one, str) for one in options) else ""
    return hint if "did you mean" in hint else ""


def show(value: Any) -> str:
    """A value on one line, short, as an error quotes it."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


def one_line(error: BaseException) -> str:
    """The first line of what an exception says."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def under(key: str, name: str) -> str:
    """The key of an entry of a table."""
    return f"{key}{'' if key.endswith(': ') else '.'}{name if name.isprintable() else show(name)}"
