"""What each part must be able to do. A new part is one file with one subclass; the tests find it.

Parts are built from plain keyword arguments. A part that needs another of a size it alone knows takes a factory: a
class, or a `functools.partial` of one (`cell=LSTM`, `cell=partial(GRU, reset="before")`).

Contracts are imported from here and loaded when asked for: those of data and search work without torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seqloom.contracts.data import Codec, Feed, Task
    from seqloom.contracts.objective import Objective
    from seqloom.contracts.parts import Attention, Cell, Decoder, Encoder, Head, Online
    from seqloom.contracts.search import Constraint, Finder, Search, Stepper

__all__ = [
    "Attention",
    "Cell",
    "Codec",
    "Constraint",
    "Decoder",
    "Encoder",
    "Feed",
    "Finder",
    "Head",
    "Objective",
    "Online",
    "Search",
    "Stepper",
    "Task",
]

HOMES = {
    **dict.fromkeys(("Constraint", "Finder", "Search", "Stepper"), "search"),
    **dict.fromkeys(("Codec", "Feed", "Task"), "data"),
    "Objective": "objective",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'seqloom.contracts' has no attribute {name!r}")
    return getattr(import_module(f"seqloom.contracts.{HOMES.get(name, 'parts')}"), name)
