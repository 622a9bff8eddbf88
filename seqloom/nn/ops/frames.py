"""Where a row of an online decoder stands in its source, and what it may say there.

A frame (rows,) counts states from the beginning of the source; a memory may have forgotten some of the first.
"""

import torch
from torch import Tensor

from seqloom.types import Memory

NEVER = float("-inf")


def at_frame(entry: Tensor, frame: Tensor, memory: Memory) -> Tensor:
    """An entry of the memory where each row stands; that of the last state beyond it.  (B, T, D) -> (rows, D)"""
    owner = memory.owner(len(frame))
    if not entry.shape[1]:
        return entry.new_zeros(len(frame), entry.shape[2])
    return entry[owner, (frame - memory.offset).clamp(0, entry.shape[1] - 1)]


def frames_left(frame: Tensor, memory: Memory) -> Tensor:
    """How many states each row has before it, that where it stands among them.  (rows,)"""
    return memory.offset + memory.lengths[memory.owner(len(frame))] - frame


def mask_after_last_frame(scores: Tensor, frame: Tensor, memory: Memory, eos: int) -> Tensor:
    """Scores, except that past the last state EOS alone has one, or nothing has while more may come.  (rows, V)"""
    over = (frames_left(frame, memory) <= 0)[:, None]
    ended = torch.full_like(scores, NEVER)
    if memory.closed:
        ended[:, eos] = 0
    return torch.where(over, ended, scores)
