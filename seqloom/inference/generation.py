"""Texts of a language model: from nothing, or continued from a prefix."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import torch
from torch import Tensor

from seqloom.config.build import build_part
from seqloom.contracts import Search
from seqloom.errors import SeqloomError, shown
from seqloom.inference.constraints import build_constraints, encode_prefix
from seqloom.inference.series import generate_series
from seqloom.inference.system import System, build_search, check_given, encode_source, refuse_masked, search_table
from seqloom.tasks.series import Series
from seqloom.tasks.text import RunningText
from seqloom.types import Hypothesis, Padded

Write = Callable[[Search, Padded | None], list[Hypothesis]]
MOST_TEXTS = 1_000  # of one call: they are written side by side


@torch.inference_mode()
def generate(
    system: System,
    count: int = 1,
    *,
    source: Any = None,
    prefix: Any = None,
    search: Search | None = None,
    **settings: Any,
) -> list[Any]:
    """So many texts, pictures or series of vectors, all for one source where the model reads one.

    `settings` are those of the search, by default sampling.
    """
    refuse_masked(system)
    task, model = system.task, system.model
    if task.source is not None and not isinstance(task, Series):
        raise SeqloomError("this run reads a source: use `predict`")
    check_given(system, source)
    check_count(count)
    if task.target.is_vectors:
        return generate_series(system, count, prefix, search, settings)
    read = None if source is None else model.pad([encode_source(system, source)] * count)
    constraints, begun = build_constraints(system, None), encode_prefix(system, prefix)
    if task.target.endless:
        settings = {**settings, **length_of(system, 0 if begun is None else len(begun), settings.get("maximum_length"))}
    beginning = None if begun is None else Padded.stack([begun] * count).to(model.device)

    def write(search: Search, beginning: Padded | None) -> list[Hypothesis]:
        found = search(model.decoder, model.encode(read, count), beginning, constraints)
        return [one[0] for one in found]

    if isinstance(task, RunningText) and not task.carry and search is None:
        return generate_in_windows(system, task, write, beginning, count, settings)
    search = search or build_search(system, **{"type": "sample", **settings})
    return [task.decode(one.tokens) for one in write(search, beginning)]


def check_count(count: Any) -> None:
    """Refuse a number of values that are drawn side by side."""
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MOST_TEXTS:
        raise SeqloomError(f"count = {shown(count)}: expected 1 to {MOST_TEXTS:,}; ask for more in several calls")


def length_of(system: System, begun: int, length: int | None) -> dict[str, int]:
    """How many tokens an output without an end may have, its beginning included: a picture or film no more than a whole
    one has.
    """
    codec, found = system.task.target, {} if length is None else {"maximum_length": length}
    if codec.canvas is not None:
        whole = prod(codec.canvas) * (codec.frames or 1)
        if length is not None and length > whole:
            raise SeqloomError(f"maximum_length = {length:,}: expected at most {whole:,}, the values of a whole one")
        found = {"maximum_length": length or whole}
    if found and begun >= found["maximum_length"]:
        most = found["maximum_length"]
        raise SeqloomError(
            f"the prefix has {begun:,} tokens of at most {most:,}: nothing is left to draw; give a shorter one"
        )
    return found


def generate_in_windows(
    system: System, task: RunningText, write: Write, prefix: Padded | None, count: int, settings: dict[str, Any]
) -> list[Any]:
    """A running text longer than the window that the model has learned to see."""
    device = system.model.device
    table = search_table(system, **{"type": "sample", **settings})
    length = table.get("maximum_length") or system.model.decoder.length_offset
    seed = table.get("seed")
    calls = 0

    def write_on(beginning: Tensor, length: int) -> Tensor:
        nonlocal calls
        limits = {"maximum_length": length, "minimum_length": 0}
        if seed is not None:  # other random numbers for each part of the text
            limits["seed"] = seed + calls
        calls += 1
        rows, given = beginning.shape
        padded = Padded(beginning, torch.full((rows,), given, device=device)) if given else None
        written = write(build_part("search", {**table, **limits}, "search", system.trust), padded)
        return torch.tensor([one.tokens for one in written], device=device)

    nothing = torch.zeros(count, 0, dtype=torch.long, device=device)
    text = continue_text(write_on, nothing if prefix is None else prefix.values, length, task.window)
    return [task.decode(row) for row in text.cpu()]


def continue_text(write: Callable[[Tensor, int], Tensor], beginning: Tensor, length: int, window: int) -> Tensor:
    """A text of so many tokens by a model that sees one window: it continues from the last half of each.

    `write` takes the tokens before, (rows, P), and the length to reach, and returns all of them, (rows, length).
    """
    text = write(beginning[:, -(window - 1) :], min(length, window))
    text = torch.cat([beginning[:, : -(window - 1)], text], dim=1)
    while text.shape[1] < length:
        seen = text[:, -(window // 2) :]
        more = write(seen, min(seen.shape[1] + length - text.shape[1], window))
        text = torch.cat([text, more[:, seen.shape[1] :]], dim=1)
    return text
