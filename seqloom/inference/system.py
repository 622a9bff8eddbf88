"""A system: a model with the task and recipe it was trained with. What is done with it are functions of it.

Exported models are systems too, so there is no torch here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from seqloom.config.assemble import call
from seqloom.config.build import build_part
from seqloom.config.settings import Data
from seqloom.contracts import Codec, Search, Task
from seqloom.data.as_text import LineError
from seqloom.data.codecs.copying import Copying
from seqloom.data.codecs.places import Places
from seqloom.data.frames import python_rows
from seqloom.data.layout import Layout
from seqloom.data.limits import admit, refuse_long
from seqloom.data.lines import title_of
from seqloom.data.special_tokens import UNK
from seqloom.errors import SeqloomError, show, shown
from seqloom.types import Encoded, Example
from seqloom.values import check


@dataclass(frozen=True)
class System:
    """`model` is a `seqloom.nn.model.Model`, or the engine of an exported run: whatever finds outputs."""

    model: Any
    task: Task
    recipe: dict[str, Any]
    path: Path | None = None
    trust: bool = False
    sources: tuple[Codec, ...] = ()  # more than one where the members of an ensemble read a source differently
    exported: bool = False  # it predicts and evaluates, and cannot score, stream or be combined

    def __post_init__(self) -> None:
        if not self.sources and self.task.source is not None:
            object.__setattr__(self, "sources", (self.task.source,))

    @property
    def max_characters(self) -> int:
        """The limit of one source, at every door."""
        limit: int = self.recipe.get("data", {}).get("max_characters", Data.max_characters)
        return limit

    def with_limit(self, characters: int) -> System:
        """The system with another limit."""
        call(Data, "data", {"max_characters": check(int, characters, "max_characters")})
        data = {**self.recipe.get("data", {}), "max_characters": characters}
        return replace(self, recipe={**self.recipe, "data": data})


def refuse_masked(system: System) -> None:
    """Refuse a run that finds masked words where an output is asked for."""
    if system.task.reads_itself:
        raise SeqloomError("this run finds masked words and writes no outputs: use `fill` or `evaluate`")


def check_given(system: System, source: Any) -> None:
    """Refuse a source where the run reads none, and no source where it reads one."""
    if (system.task.source is None) != (source is None):
        found = "this run reads a source: give one" if source is None else "this run reads none: leave it out"
        raise SeqloomError(f"source: {found}")


def build_search(system: System, **settings: Any) -> Search:
    """The recipe's search with some settings changed; another `type` starts from that type's defaults."""
    table = search_table(system, **settings)
    search: Search = build_part("search", table, "search", system.trust)
    if not system.exported:
        call(search.suit, f"search.type = {show(table['type'])}", {"decoder": system.model.decoder})
    return search


def search_table(system: System, **settings: Any) -> dict[str, Any]:
    """The search as a table of a recipe."""
    ours = system.recipe["search"]
    return settings if settings.get("type", ours["type"]) != ours["type"] else {**ours, **settings}


def admit_source(system: System, source: Any, name: str, truncate: bool = False, most: int | None = None) -> Any:
    """The source, cut or refused where it is too long; `most` lowers the limit."""
    if system.task.source is None:
        return source
    limit = system.max_characters if most is None else min(most, system.max_characters)
    return admit(system.task.source, source, limit, name, truncate)


def encode_source(system: System, source: Any) -> list[Encoded]:
    """The source as each codec reads it."""
    found = [encode(system, codec, source, "source") for codec in system.sources]
    if isinstance(system.task.target, Places):
        system.task.target.check([], source, len(found[0]))
    return found


def encode(system: System, codec: Any, value: Any, what: str, known: bool = False) -> Encoded:
    """A value as tokens or vectors, at least one; with `known`, all of them tokens that the model can write."""
    refuse_long(value, system.max_characters, f"the {what}", None if codec is system.task else codec)
    tokens: Encoded = codec.read(value) if what == "source" else codec.encode(value)
    if not len(tokens):
        raise SeqloomError(f"the {what} {shown(value)} is empty: give at least one token")
    if known and UNK in tokens.tolist():
        name = f"the {what} {shown(value)}"
        raise SeqloomError(f"{name} has tokens that are not in this model's vocabulary: leave them out")
    return tokens


def pieces(codec: Any, tokens: Any, source: Any = None) -> list[str]:
    """Each token as people read it; a copied one as the source spells it."""
    if isinstance(codec, Copying):
        return codec.pieces(tokens, source)
    return list(codec.pieces(tokens)) if hasattr(codec, "pieces") else [str(token) for token in map(int, tokens)]


def source_pieces(codec: Any, tokens: Any, source: Any, states: int) -> list[str]:
    """What the states of a memory stand for, as people read it: the parts of a divided source, or each token."""
    if getattr(codec, "divided", "") and states != len(tokens):
        return list(codec.divisions(tokens))
    return pieces(codec, tokens, source)


def has_unknown_source(system: System, source: Any) -> bool:
    """Whether a source has tokens that are not in the vocabulary."""
    reads = [codec for codec in system.sources if codec.vocabulary and codec.chooses != "copies"]
    return any(UNK in codec.encode(source).tolist() for codec in reads)


def has_unknown_target(system: System, example: Example) -> bool:
    """Whether a target has tokens that the model can neither write nor copy."""
    target = system.task.target
    return target.vocabulary is not None and UNK in target.encode(example.target, example.source).tolist()


def as_examples(system: System, data: Iterable[Any]) -> list[Example]:
    """Examples of whatever Python holds: pairs, a table; a language model takes targets alone. They may be empty."""
    reading, title, sides = system.recipe["data"], title_of(data), 1 if system.task.source is None else 2
    rows = python_rows(data, sides, Layout.of(reading), system.max_characters, title)
    found = []
    for number, columns in rows:
        if isinstance(columns, LineError):
            raise SeqloomError(f"{title}, line {number}: {columns.expected}, found {shown(columns.found)}")
        found.append(Example(*columns, number))
    return found
