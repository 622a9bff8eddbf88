"""Alignments of tokens to blocks: which tokens of an output are written in which block of its source.

Jaitly et al. 2016, section 2.5, approximate dynamic programming: for each block and each number of tokens written by
its end, only the best path is kept. It is approximate because the decoder's state depends on the whole path. With
U tokens and B blocks there are C(U + B - 1, U) alignments.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from seqloom.contracts import Online
from seqloom.types import Memory, Padded, hold, positions_below, select


@dataclass(frozen=True)
class AlignedTargets:
    """Inputs and targets of teacher forcing: outputs with a blank at the end of each block, and EOS last."""

    inputs: Padded  # (rows, U + blocks + 1)
    targets: Padded
    possible: Tensor  # (rows,): false if the tokens do not fit into the blocks; such rows have blanks only


@torch.no_grad()
def best_alignment(
    decoder: Online, memory: Memory, targets: Padded, blocks: Tensor, longest: int, beam_size: int = 0
) -> Tensor:
    """How many tokens each block gets, at most `longest`; `blocks` (B,) is the number of blocks.  -> (B, blocks)

    Targets are y1 .. yn EOS, one row per source. `beam_size` > 0 keeps only the best token counts after each block.
    """
    rows, width = targets.values.shape  # token counts are 0 .. width - 1
    output_lengths, blank = targets.lengths[:, None] - 1, decoder.blanks[0]
    numbers = torch.arange(width, device=targets.lengths.device)
    state = decoder.start_rows(memory, rows * width)
    totals = torch.where(numbers > 0, float("-inf"), 0.0).repeat(rows, 1)  # (B, width)
    token = torch.full((rows * width,), decoder.bos, device=numbers.device)
    choices = []
    for block in range(int(blocks.max()) if len(blocks) else 0):
        best, choice, kept = torch.full_like(totals, float("-inf")), torch.zeros_like(targets.values), state
        so_far, now = totals, state
        for count in range(min(longest, width - 1) + 1):
            scores, now = decoder.step(token, now, memory)
            scores = scores.view(rows, width, -1)
            from_ = (numbers - count).clamp(min=0)
            ended = (so_far + scores[:, :, blank])[:, from_].masked_fill(numbers < count, float("-inf"))
            better = ended > best
            best, choice = torch.where(better, ended, best), choice.masked_fill(better, count)
            origin = torch.arange(rows, device=numbers.device)[:, None] * width + from_
            kept = hold(~better.flatten(), select(now, origin.flatten()), kept)
            following = targets.values[:, (numbers + count).clamp(max=width - 1)]  # (B, width)
            written = scores.gather(2, following[:, :, None])[:, :, 0]
            so_far = (so_far + written).masked_fill(numbers + count >= output_lengths, float("-inf"))
            token = following.flatten()
        room = (blocks[:, None] - block - 1) * longest
        best = best.masked_fill(output_lengths - numbers > room, float("-inf"))
        if beam_size:
            best = best.masked_fill(best < best.topk(min(beam_size, width)).values[:, -1:], float("-inf"))
        past_end = block >= blocks[:, None]
        totals, state = torch.where(past_end, totals, best), kept
        choices.append(choice.masked_fill(past_end, 0))
        token = torch.full_like(token, blank)
    reached = output_lengths
    counts = []
    for choice in reversed(choices):
        counts.append(choice.gather(1, reached)[:, 0])
        reached = reached - counts[-1][:, None]
    return torch.stack(counts[::-1], dim=1) if counts else targets.values[:, :0]


def even_alignment(targets: Padded, blocks: Tensor) -> Tensor:
    """Tokens spread evenly over the blocks.  (B,) -> (B, blocks)"""
    numbers = torch.arange(int(blocks.max()) + 1 if len(blocks) else 1, device=blocks.device)
    ends = numbers.minimum(blocks[:, None]) * (targets.lengths[:, None] - 1) // blocks[:, None].clamp(min=1)
    return ends.diff(dim=1)


def insert_blanks(
    targets: Padded, counts: Tensor, blocks: Tensor, bos: int, blank: int, possible: Tensor
) -> AlignedTargets:
    """Outputs with a blank at the end of each block; `counts` (B, blocks) says how many tokens each block gets."""
    output_lengths = torch.where(possible, targets.lengths - 1, 0)
    counts = counts * possible[:, None]
    lengths = output_lengths + blocks + 1
    path = torch.full((len(lengths), int(lengths.max())), blank, device=counts.device)
    positions = torch.arange(targets.values.shape[1], device=counts.device)
    earlier = (counts.cumsum(1)[:, None] <= positions[:, None]) & positions_below(blocks, counts.shape[1])[:, None]
    real = positions_below(output_lengths, len(positions))
    path = path.scatter(1, torch.where(real, positions + earlier.sum(2), lengths[:, None] - 1), targets.values)
    path = path.scatter(1, lengths[:, None] - 1, targets.values.gather(1, targets.lengths[:, None] - 1))
    begin = torch.full_like(path[:, :1], bos)
    return AlignedTargets(Padded(torch.cat([begin, path[:, :-1]], dim=1), lengths), Padded(path, lengths), possible)
