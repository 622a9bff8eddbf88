"""Parts found by kind and name, and what their constructors take.

The name of a part is the name of its file: the decoder `recurrent` is the one public subclass of Decoder in
seqloom/nn/decoders/recurrent.py. There is no registry; adding a file adds a part. A part is imported when it is asked
for.
"""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from inspect import Parameter as Argument
from inspect import isabstract, signature
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from seqloom import contracts
from seqloom.errors import SeqloomError, nearest, one_line, show
from seqloom.values import ABSENT

CONTRACTS = {
    "cells": "Cell",
    "attention": "Attention",
    "encoders": "Encoder",
    "decoders": "Decoder",
    "objectives": "Objective",
    "search": "Search",
    "codecs": "Codec",
    "tasks": "Task",
}
HOMES = {
    "cells": ("nn.cells",),
    "attention": ("nn.attention",),
    "encoders": ("nn.encoders",),
    "decoders": ("nn.decoders", "nn.heads"),
    "codecs": ("data.codecs",),
}  # the folders of a kind, where they are not the one of its name


def contract(kind: str) -> type:
    """What every part of a kind is a subclass of. Those of models import torch."""
    return getattr(contracts, CONTRACTS[kind])


def word(kind: str) -> str:
    """What one part of a kind is called in a sentence."""
    return CONTRACTS[kind].lower()


def one(kind: str) -> str:
    """The word with its article."""
    return f"{'an' if word(kind)[0] in 'aeiou' else 'a'} {word(kind)}"


def modules(kind: str) -> dict[str, str]:
    """The files of a kind: name -> module. Not all need hold a part."""
    found = {}
    for folder in HOMES.get(kind, (kind,)):
        package = importlib.import_module(f"seqloom.{folder}")
        for each in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            found[each.name.rpartition(".")[2]] = each.name if not each.ispkg else ""
    return {name: module for name, module in sorted(found.items()) if module}


def parts(kind: str) -> dict[str, type]:
    """Every part of a kind by name."""
    found = {name: part_of_module(kind, module) for name, module in modules(kind).items()}
    return {name: part for name, part in found.items() if part is not None}


def part_of_module(kind: str, name: str) -> type | None:
    """The one public part a module defines, if it defines one. What is abstract is only shared by parts."""
    module = importlib.import_module(name)
    found = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and value.__module__ == module.__name__ and not value.__name__.startswith("_")
        if issubclass(value, contract(kind)) and not isabstract(value)
    ]
    if len(found) > 1:
        names = ", ".join(part.__name__ for part in found)
        raise SeqloomError(f"{name}: expected one public {word(kind)}, found {names}")
    return found[0] if found else None


def find(kind: str, name: str, key: str, trust: bool = False) -> type:
    """The part of that name; `module:Class` is a part of the user's own, imported only under trust."""
    if not isinstance(name, str):
        raise SeqloomError(f"{key} = {show(name)}: expected the name of {one(kind)}")
    if ":" in name:
        return find_own(kind, name, key, trust)
    stem = name.replace("-", "_")
    known = modules(kind)
    part = part_of_module(kind, known[stem]) if stem in known else None
    if part is None:
        raise SeqloomError(f"{key} = {show(name)}: no such {word(kind)}{nearest(stem, parts(kind))}")
    return part


def import_own(name: str, key: str, trust: bool) -> Any:
    """What `module:Class` names."""
    if not trust:
        raise untrusted(name, key)
    module, _, attribute = name.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except Exception as error:  # anything may happen while a user's module runs
        reason = f"{type(error).__name__}: {one_line(error)}"
        raise SeqloomError(f"{key} = {show(name)}: cannot be imported as module:Class ({reason})") from error


def find_own(kind: str, name: str, key: str, trust: bool) -> type:
    """A part of the user's own. Importing it runs its code, hence the question of trust."""
    part = import_own(name, key, trust)
    if not isinstance(part, type) or not issubclass(part, contract(kind)):
        raise SeqloomError(f"{key} = {show(name)}: expected a subclass of seqloom.contracts.{CONTRACTS[kind]}")
    return part


def untrusted(name: str, key: str) -> SeqloomError:
    """Why a part of the user's own is refused."""
    return SeqloomError(
        f"{key} = {show(name)}: names code outside Seqloom; trust it (--trust, or trust=True) or choose another part"
    )


def as_table(kind: str, part: Any) -> Any:
    """A default of a constructor as a recipe writes it: LSTM becomes {"type": "lstm"}; plain values stay."""
    if isinstance(part, partial):
        return {**as_table(kind, part.func), **part.keywords}
    if isinstance(part, type):
        name = part.__module__.rpartition(".")[2]
        ours = modules(kind).get(name) == part.__module__ and part_of_module(kind, part.__module__) is part
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

    kind: str
    factory: bool = False
    table: bool = False  # several of them, by name


def slot(annotation: Any) -> Slot | None:
    """What part an annotation asks for, if it asks for one: Codec, Callable[..., Cell] | None, dict[str, Codec]."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        return next((found for found in map(slot, arguments) if found), None)
    if origin is Callable and arguments:
        inner = slot(arguments[-1])
        return inner and replace(inner, factory=True)
    if origin is dict:
        inner = slot(arguments[1])
        return inner and replace(inner, table=True)
    if isinstance(annotation, type):
        # Known by name: to ask `issubclass` of all contracts would import torch.
        names = {base.__name__ for base in annotation.__mro__ if base.__module__.startswith("seqloom.contracts.")}
        return next((Slot(kind) for kind, name in CONTRACTS.items() if name in names), None)
    return None
