"""A memory as it was when less of its source had been read: what it means to write while reading."""

from dataclasses import replace

import torch
from torch import Tensor

from seqloom.nn.attention.multihead import mask_bias
from seqloom.types import Memory, State, positions_below


def prefix_memory(memory: Memory, counts: Tensor) -> Memory:
    """The memory of rows that have read so many states each, counted from the source's beginning.  (rows,)

    Rows of a source that have not read alike get a copy each. The summary is the last state that was read.
    """
    own = counts.view(memory.rows, -1)
    if bool((own != own[:, :1]).any()):
        memory, own = memory.select(memory.owner(len(counts))), counts[:, None]
    lengths = torch.minimum(own[:, 0] - memory.offset, memory.lengths)  # (B,)
    seen = positions_below(lengths, memory.states.shape[1])
    final = {"summary": last_state_read(memory, lengths)}
    return replace(memory, lengths=lengths, final=final, extra=restrict_attention(memory.extra, seen[:, None]))


def restrict_attention(extra: State, seen: Tensor) -> State:
    """What attentions have prepared, with a bias, (B, 1, 1 or Q, T): queries look where `seen`, (B, 1 or Q, T), is."""
    added = mask_bias(seen)

    def with_bias(part: State) -> State:
        inner = {name: with_bias(value) for name, value in part.items() if isinstance(value, dict) and name != "cost"}
        return {**part, **inner, "bias": added}

    return with_bias(extra)


def last_state_read(memory: Memory, lengths: Tensor) -> Tensor:
    """The last of so many states of each source.  (B,) -> (B, D)"""
    if not memory.states.shape[1]:  # a stream that has not begun
        return memory.states.new_zeros(memory.rows, memory.states.shape[2])
    return memory.states[torch.arange(memory.rows, device=lengths.device), lengths - 1]
