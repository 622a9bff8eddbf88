"""Values of recipes and commands, checked against type annotations."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from inspect import Parameter
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from seqloom.errors import SeqloomError, nearest, show, shown

ABSENT = Parameter.empty  # the default of an argument without one
LARGEST = 2**63 - 1  # what fits into an integer of torch and numpy
WORDS = {int: "an integer", float: "a number", str: "a string", Path: "a path", bool: "true or false"}


def check(annotation: Any, value: Any, key: str, finite: bool = True) -> Any:
    """A value as its annotation wants it. An integer may stand for a float; nothing else is converted."""
    if finite:
        check_numbers(value, key)
    if (found := understood(annotation, value)) is not ABSENT:
        return found
    from pydantic import PydanticSchemaGenerationError, TypeAdapter, ValidationError

    try:
        # As JSON, because there a list may stand for a tuple and a string for a path, and all else stays strict.
        return TypeAdapter(annotation).validate_json(json.dumps(value, default=os.fspath), strict=True)
    except ValidationError as error:
        reason = f"expected {expected(annotation)}{choices(annotation, value)}"
        if get_origin(annotation) is Annotated:  # bounds: pydantic explains them well
            reason = error.errors()[0]["msg"]
        raise SeqloomError(f"{key} = {show(value)}: {reason}") from error
    except (TypeError, ValueError, RecursionError, PydanticSchemaGenerationError) as error:
        raise SeqloomError(f"{key} = {show(value)}: expected {expected(annotation)}") from error


def check_numbers(value: Any, key: str) -> None:
    """Refuse numbers that no computation could take, also in lists: integers beyond 64 bits, NaN and infinities."""
    if isinstance(value, (list, tuple, Mapping)):
        for each in value.values() if isinstance(value, Mapping) else value:
            if isinstance(each, (int, float)):
                check_numbers(each, key)
    elif isinstance(value, int) and abs(value) > LARGEST:
        raise SeqloomError(f"{key} = {show(value)}: expected a number of at most 64 bits")
    elif isinstance(value, float) and not math.isfinite(value):
        raise SeqloomError(f"{key} = {value}: expected a finite number")


def expect(least: float, most: float, **values: float | None) -> None:
    """Refuse arguments of a constructor that are out of bounds; None is no value."""
    for name, value in values.items():
        if value is not None and not least <= value <= most:  # NaN is never within
            raise ValueError(f"{name} = {shown(value)}: expected a number from {least:,} to {most:,}")


def understood(annotation: Any, value: Any) -> Any:
    """A value whose type is plainly right; ABSENT where pydantic must decide, which is slow to import."""
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
