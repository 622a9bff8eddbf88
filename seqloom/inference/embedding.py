"""Vectors of sources: what an encoder makes of each, as one vector, and which of them lie near each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from seqloom.errors import SeqloomError, nearest, shown
from seqloom.inference.candidates import is_blank
from seqloom.inference.find import batches
from seqloom.inference.system import System, admit_source, encode_source
from seqloom.tasks.masked import Masked
from seqloom.types import Encoded, Memory

Pooling = Literal["mean", "first", "max"]


@torch.inference_mode()
def embed(
    system: System,
    sources: Sequence[Any],
    *,
    pooling: Pooling = "mean",
    normalise: bool = False,
    truncate: bool = False,
) -> np.ndarray:
    """A vector for each source: the mean of the encoder's states, the first of them, or the largest of each component.

    With `normalise` each has length 1. Which sources are embedded together changes nothing.  float32 (N, D)
    """
    if system.model.encoder is None:
        raise SeqloomError("this run reads no source, so it has no vectors of them: take one with an encoder")
    if pooling not in get_args(Pooling):
        raise SeqloomError(f"pooling = {shown(pooling)}: no such pooling{nearest(str(pooling), get_args(Pooling))}")
    encoded = [read(system, source, place, truncate) for place, source in enumerate(sources, start=1)]
    found = np.zeros((len(encoded), system.model.encoder.output_size), dtype=np.float32)
    for rows in batches([max(map(len, each)) for each in encoded]):
        memory = system.model.encode(system.model.pad([encoded[row] for row in rows]))
        found[rows] = pooled(memory, pooling).float().cpu().numpy()
    return unit(found) if normalise else found


def read(system: System, source: Any, place: int, truncate: bool) -> list[Encoded]:
    """A source as the encoder reads it; of masked words framed as in their training."""
    task, name = system.task, f"source {place:,}"
    if is_blank(source):
        raise SeqloomError(f"{name} is empty: give at least one token, or leave it out")
    admitted = admit_source(system, source, name, truncate)
    if not isinstance(task, Masked):
        return encode_source(system, admitted)
    tokens, room = task.codec.encode(admitted), task.window - 2
    if not len(tokens):
        raise SeqloomError(f"{name} has no tokens: give at least one")
    if len(tokens) > room and not truncate:
        raise SeqloomError(
            f"{name} has {len(tokens):,} tokens; expected at most {room} (task.window): shorten it, or cut it with "
            "--truncate (in Python truncate=True)"
        )
    return [task.framed(tokens[:room])]


def pooled(memory: Memory, pooling: Pooling) -> Tensor:
    """(B, T, D) -> (B, D)"""
    states, mask = memory.states, memory.mask[:, :, None]
    if pooling == "first":
        return states[:, 0]
    if pooling == "max":
        return states.masked_fill(~mask, -torch.inf).amax(1)
    return states.masked_fill(~mask, 0).sum(1) / memory.lengths[:, None]


def unit(vectors: np.ndarray) -> np.ndarray:
    """Vectors of length 1; zeros stay zeros.  (N, D)"""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    found: np.ndarray = vectors / np.where(lengths == 0, 1, lengths)
    return found


def similar(
    system: System, query: Any, texts: Sequence[Any], *, n_best: int = 5, **options: Any
) -> list[tuple[float, int]]:
    """The texts nearest to a query, nearest first: the cosine of their vectors, and their number from 0."""
    if not isinstance(n_best, int) or n_best < 1:
        raise SeqloomError(f"n_best = {shown(n_best)}: expected 1 or more")
    if not texts:
        raise SeqloomError("there is nothing to search in: give at least one text")
    own, *vectors = embed(system, [query, *texts], normalise=True, **options)
    return nearest_of(own, np.stack(vectors), n_best)


def nearest_of(own: np.ndarray, vectors: np.ndarray, n_best: int) -> list[tuple[float, int]]:
    """The nearest of some vectors, all of length 1: cosine and number.  (D,), (N, D)"""
    cosines = vectors @ own
    order = np.argsort(-cosines, kind="stable")[:n_best]
    return [(float(cosines[number]), int(number)) for number in order]
