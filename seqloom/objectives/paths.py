"""Outputs as paths through a decoder: sampled without a gradient, then scored with one, in one pass."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from seqloom.arrays import as_tensor
from seqloom.contracts import Decoder
from seqloom.nn.ops.packing import Packing
from seqloom.objectives.cross_entropy import ROWS
from seqloom.search.sample import Sampling
from seqloom.types import Memory, Output, Padded


@dataclass(frozen=True)
class Paths:
    """n outputs per source, with EOS; rows of one source are adjacent."""

    tokens: Padded  # (rows, U)
    free: Tensor  # (rows, U): tokens the model chose: not given ones, not an EOS forced by the limit, not padding


class PathSampling(Sampling):
    """Sampling that accepts NaN scores: the loss is then NaN too, which training reports."""

    def draw(self, scores: Tensor, generator: Any) -> Tensor:
        chosen: Tensor = super().draw(scores.nan_to_num(0.0, neginf=float("-inf")), generator)
        return chosen


@torch.no_grad()
def sample_paths(
    decoder: Decoder, memory: Memory, count: int, longest: int, *, prefix: Padded | None = None, likeliest: bool = False
) -> Paths:
    """`count` outputs per source, of at most `longest` tokens, sampled from the model or greedy.

    A prefix must have the same length in every row.
    """
    sampling = PathSampling(n_best=count, maximum_length=longest, argmax_every=int(likeliest))
    draw = sampling.advance(decoder, memory, sampling.start(decoder, memory, prefix))
    columns = (draw.sampled.stack(), draw.unfinished.stack())
    tokens, free = (as_tensor(each, memory.lengths.device) for each in columns)  # (rows, U)
    lengths = free.sum(dim=1)
    given = 0 if prefix is None else prefix.values.shape[1]
    if prefix is not None and given:
        before = prefix.values.index_select(0, memory.owner(len(tokens)))
        tokens = torch.cat([before, tokens], dim=1)
        free = torch.cat([torch.zeros_like(before, dtype=torch.bool), free], dim=1)
    if decoder.eos is not None:
        positions = torch.arange(1, tokens.shape[1] + 1, device=tokens.device)
        free = free & (positions < draw.constraints.states["limit"][:, None])
    padded = Padded(tokens, lengths + given)
    return Paths(replace(padded, values=tokens * padded.mask), free)


def follow_paths(decoder: Decoder, memory: Memory, paths: Padded) -> Output:
    """The decoder's output along given paths, in one pass of teacher forcing."""
    bos = torch.full_like(paths.values[:, :1], decoder.bos)
    return decoder(memory, Padded(torch.cat([bos, paths.values[:, :-1]], dim=1), paths.lengths))


@torch.no_grad()
def log_probs(output: Output, tokens: Padded) -> Tensor:
    """The log-probability of each token, 0 at padding, without a gradient.  (rows, U)"""
    packing, (vectors, project) = Packing(tokens.mask), output.positions
    hidden, gold = packing.pack(vectors), packing.pack(tokens.values)  # (N, D), (N,)
    losses = []
    for rows, wanted in zip(hidden.split(ROWS), gold.split(ROWS)):
        scores = project(rows)  # (ROWS, V)
        precise = torch.promote_types(scores.dtype, torch.float32)  # a sum of many needs the precision
        losses.append(functional.cross_entropy(scores.to(precise), wanted, reduction="none"))
    return packing.unpack(-torch.cat(losses)[:, None])[:, :, 0]


def token_lists(tokens: Padded, eos: int | None) -> list[list[int]]:
    """The tokens of each row without EOS, as rewards compare them."""
    rows = [row[:length] for row, length in zip(tokens.values.tolist(), tokens.lengths.tolist())]
    return [row[:-1] if row and row[-1] == eos else row for row in rows]


def length_limit(targets: Padded, factor: float) -> int:
    """How many tokens a sampled output may have: `factor` times the longest target of the batch."""
    return max(round(factor * targets.values.shape[1]), 1)
