"""Constructor arguments from the values of a completed recipe, and the parts made of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from seqloom.config.discovery import find, parameters, slot
from seqloom.errors import SeqloomError, one_line, under
from seqloom.values import check


@dataclass(frozen=True)
class Section:
    """The annotation of a table without a type: its keys are the arguments of one constructor."""

    constructor: Callable[..., Any]


def assemble(annotation: Any, value: Any, key: str, trust: bool) -> Any:
    """The argument that a completed value describes."""
    if isinstance(annotation, Section):
        return call(annotation.constructor, key, arguments(annotation.constructor, value, key, trust))
    place = slot(annotation)
    if place is None:
        return check(annotation, value, key)
    if place.table:
        return {
            name: assemble_part(place.kind, each, under(key, name), trust, factory=place.factory)
            for name, each in value.items()
        }
    return assemble_part(place.kind, value, key, trust, factory=place.factory)


def assemble_part(kind: str, table: dict[str, Any], key: str, trust: bool, factory: bool = False, **given: Any) -> Any:
    """The part of a completed table, or the factory that its owner calls."""
    constructor = find(kind, table["type"], f"{key}.type", trust)
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
    """Call a constructor. Types are checked by now, so whatever it raises is about a value of the recipe."""
    try:
        return constructor(**values)
    except (TypeError, ValueError, ArithmeticError, AssertionError, RuntimeError) as error:
        raise SeqloomError(f"{key}: {one_line(error)}") from error
