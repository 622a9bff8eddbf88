"""Outputs as paths through a decoder: drawn without a gradient, then followed with one, all at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from seqloom.contracts import Decoder
from seqloom.nn.ops.packing import Packing
from seqloom.objectives.cross_entropy import ROWS
from seqloom.search.sample import Sampling
from seqloom.types import Memory, Output, Padded


@dataclass(frozen=True)
class Paths:
    """n outputs a source, EOS included; rows of one source stand together."""

    tokens: Padded  # (rows, U)
    free: Tensor  # (rows, U): the model's choice, neither given, nor the EOS that the limit forced, nor padding


class Drawing(Sampling):
    """Scores that are not numbers draw anything: the loss of it is none either, and training says so."""

    def draw(self, scores: Tensor, generator: Any) -> Tensor:
        chosen: Tensor = super().draw(scores.nan_to_num(0.0, neginf=float("-inf")), generator)
        return chosen


@torch.no_grad()
def drawn(
    decoder: Decoder, memory: Memory, count: int, longest: int, *, prefix: Padded | None = None, likeliest: bool = False
) -> Paths:
    """So many outputs a source, of at most `longest` tokens, drawn from the model, or of its likeliest tokens.

    A prefix has as many tokens in every row.
    """
    sampling = Drawing(n_best=count, maximum_length=longest, argmax_every=int(likeliest))
    draw = sampling.advance(decoder, memory, sampling.start(decoder, memory, prefix))
    tokens, free = torch.stack(draw.sampled, dim=1), torch.stack(draw.unfinished, dim=1)  # (rows, U)
    lengths = free.sum(dim=1)
    given = 0 if prefix is None else prefix.values.shape[1]
    if prefix is not None and given:
        before = prefix.values.index_select(0, memory.owner(len(tokens)))
        tokens = torch.cat([before, tokens], dim=1)
        free = torch.cat([torch.zeros_like(before, dtype=torch.bool), free], dim=1)
    if decoder.eos is not None:
        places = torch.arange(1, tokens.shape[1] + 1, device=tokens.device)
        free = free & (places < draw.constraints.states["limit"][:, None])
    padded = Padded(tokens, lengths + given)
    return Paths(replace(padded, values=tokens * padded.mask), free)


def followed(decoder: Decoder, memory: Memory, paths: Padded) -> Output:
    """What the decoder thinks along given outputs, in one pass."""
    begin = torch.full_like(paths.values[:, :1], decoder.bos)
    return decoder(memory, Padded(torch.cat([begin, paths.values[:, :-1]], dim=1), paths.lengths))


@torch.no_grad()
def log_probs(output: Output, tokens: Padded) -> Tensor:
    """Of each token, 0 at padding, without a gradient.  (rows, U)"""
    packing, (thought, project) = Packing(tokens.mask), output.positions
    hidden, symbols = packing.pack(thought), packing.pack(tokens.values)  # (N, D), (N,)
    losses = []
    for some, wanted in zip(hidden.split(ROWS), symbols.split(ROWS)):
        scores = project(some)  # (ROWS, V)
        precise = torch.promote_types(scores.dtype, torch.float32)  # a sum of many needs the digits
        losses.append(functional.cross_entropy(scores.to(precise), wanted, reduction="none"))
    return packing.unpack(-torch.cat(losses)[:, None])[:, :, 0]


def bodies(tokens: Padded, eos: int | None) -> list[list[int]]:
    """The tokens of each row, without EOS: what rewards compare."""
    rows = [row[:length] for row, length in zip(tokens.values.tolist(), tokens.lengths.tolist())]
    return [row[:-1] if row and row[-1] == eos else row for row in rows]


def room(targets: Padded, factor: float) -> int:
    """How many tokens an output may have beside targets of this batch: some more than the longest of them."""
    return max(round(factor * targets.values.shape[1]), 1)
