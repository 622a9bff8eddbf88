"""The frame of each row of an online decoder, and what it may write there.

A frame (rows,) is an index into the encoder states, counted from the beginning of the source; a memory may have dropped
the first ones (`memory.offset`).
"""

import torch
from torch import Tensor

from seqloom.types import Memory

NEVER = float("-inf")


def at_frame(entry: Tensor, frame: Tensor, memory: Memory) -> Tensor:
    """The entry at each row's frame; beyond the end, the last one.  (B, T, D) -> (rows, D)"""
    owner = memory.owner(len(frame))
    if not entry.shape[1]:
        return entry.new_zeros(len(frame), entry.shape[2])
    return entry[owner, (frame - memory.offset).clamp(0, entry.shape[1] - 1)]


def frames_left(frame: Tensor, memory: Memory) -> Tensor:
    """How many frames each row has left to read, the current one included.  (rows,)"""
    return memory.offset + memory.lengths[memory.owner(len(frame))] - frame


def mask_after_last_frame(scores: Tensor, frame: Tensor, memory: Memory, eos: int) -> Tensor:
    """Past the last frame, mask everything but EOS, and EOS too while the memory may still grow.  (rows, V)"""
    past_end = (frames_left(frame, memory) <= 0)[:, None]
    ended = torch.full_like(scores, NEVER)
    if memory.closed:
        ended[:, eos] = 0
    return torch.where(past_end, ended, scores)
