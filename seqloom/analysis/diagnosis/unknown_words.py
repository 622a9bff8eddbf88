"""Words that are not in the vocabulary, and how many of them could be copied from the source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from seqloom.analysis.diagnosis.commands import Commands
from seqloom.analysis.diagnosis.finding import Finding, percent
from seqloom.contracts import Codec
from seqloom.data.codecs.copying import Copying
from seqloom.data.codecs.text import Text
from seqloom.data.special_tokens import UNK
from seqloom.inference.system import System
from seqloom.types import Example

TARGETS = 0.01  # each unknown word of a target is an error for certain
SOURCES = 0.05  # a source can be understood without a few of its words
COPYABLE = 0.2  # of the unknown words: worth another recipe


@dataclass(frozen=True)
class UnknownWords:
    """Shares of words, or of characters where these are the units."""

    source: float | None  # None where nothing can be unknown
    target: float | None
    copyable: float | None  # of the unknown words of targets, those that are in their source
    copies: bool  # the run copies them already
    units: str = "words"  # or "characters"

    @classmethod
    def count(cls, system: System, examples: Sequence[Example]) -> UnknownWords:
        source, target = reader_of(system.task.source), reader_of(system.task.target)
        of_targets = unknown_places(target, [example.target for example in examples])
        missing = [
            (word, example.source)
            for example, places in zip(examples, of_targets)
            for word, is_unknown in zip(target.words(example.target) if target else (), places)
            if is_unknown
        ]
        there = [target is not None and isinstance(text, str) and word in target.words(text) for word, text in missing]
        return cls(
            source=share(unknown_places(source, [example.source for example in examples])),
            target=share(of_targets),
            copyable=sum(there) / len(there) if there else None,
            copies=system.task.target.chooses == "copies",
            units="characters" if target is not None and target.units == "char" else "words",
        )

    def figures(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        sides = ((self.source, "source"), (self.target, "target"))
        known = [f"{percent(share)} of the {side} {self.units}" for share, side in sides if share is not None]
        if not known:
            return ""
        copied = "" if self.copyable is None else f"; {percent(self.copyable)} of those of targets are in their source"
        return f"Not in the vocabulary: {', '.join(known)}{copied}."


def reader_of(codec: Codec | None) -> Copying | None:
    """Reads words of a text that may be unknown; None for units of which none can be."""
    if isinstance(codec, Copying):
        return codec
    return Copying(codec=codec) if isinstance(codec, Text) and codec.units in ("word", "char") else None


def unknown_places(reader: Copying | None, values: Sequence[Any]) -> list[np.ndarray]:
    """Whether each word of each value is unknown; nothing where none can be."""
    return [] if reader is None else [reader.codec.encode(value) == UNK for value in values]


def share(places: Sequence[np.ndarray]) -> float | None:
    """The share of words that are unknown; None without words."""
    return float(np.concatenate(places).mean()) if sum(map(len, places)) else None


def unknown_targets(words: UnknownWords, commands: Commands, has_attention: bool) -> Finding | None:
    """Unknown words that a target has cannot be written, unless they are copied."""
    if words.target is None or words.target <= TARGETS:
        return None
    could = words.copyable or 0.0
    sentence = f"{percent(words.target)} of the target {words.units} are not in the vocabulary"
    if words.copies:
        if words.target * (1 - could) <= TARGETS:
            return None
        sentence += f", and {percent(1 - could)} of these are not in their source either"
        advice, command = "Enlarge the vocabulary.", larger_vocabulary(commands)
    elif could >= COPYABLE and has_attention:
        sentence += f"; {percent(could)} of them are in their source and could be copied"
        advice = "Replace them by the source words with the most attention, or train a recipe that copies: "
        advice += f"{commands.other_recipe('pointer-generator')}."
        command = commands.diagnose("--replace-unknown")
    elif could >= COPYABLE:
        sentence += f"; {percent(could)} of them are in their source and could be copied"
        advice, command = "Train a recipe that copies.", commands.other_recipe("pointer-generator")
    else:
        advice, command = "Write them in byte pairs.", commands.byte_pairs()
    return Finding("unknown-target-words", "problem", f"{sentence}.", advice, command)


def unknown_sources(words: UnknownWords, commands: Commands) -> Finding | None:
    if words.source is None or words.source <= SOURCES or words.copies:
        return None
    return Finding(
        "unknown-source-words",
        "hint",
        f"{percent(words.source)} of the source {words.units} are not in the vocabulary.",
        "Read them in byte pairs.",
        commands.byte_pairs(),
    )


def larger_vocabulary(commands: Commands) -> str:
    task = commands.recipe["task"]
    sizes = [(side, task[side].get("size")) for side in ("source", "target") if isinstance(task.get(side), dict)]
    return commands.again("words", *(f"task.{side}.size={2 * size}" for side, size in sizes if size))
