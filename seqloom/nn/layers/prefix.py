"""The memory of a prefix of the source: for decoders that write before they have read all of it."""

from dataclasses import replace

import torch
from torch import Tensor

from seqloom.nn.attention.multihead import mask_bias
from seqloom.types import Memory, State, positions_below


def prefix_memory(memory: Memory, counts: Tensor) -> Memory:
    """The memory of rows that have read the first `counts` states, from the beginning of the source.  (rows,)

    If rows of one source differ in how much they have read, each row gets a copy of its own. The summary is the last
    state read.
    """
    own = counts.view(memory.rows, -1)
    if bool((own != own[:, :1]).any()):
        memory, own = memory.select(memory.owner(len(counts))), counts[:, None]
    lengths = torch.minimum(own[:, 0] - memory.offset, memory.lengths)  # (B,)
    seen = positions_below(lengths, memory.states.shape[1])
    final = {"summary": last_state_read(memory, lengths)}
    return replace(memory, lengths=lengths, final=final, extra=restrict_attention(memory.extra, seen[:, None]))


def restrict_attention(extra: State, seen: Tensor) -> State:
    """memory.extra with a bias, (B, 1, 1 or Q, T), by which queries attend only where `seen` (B, 1 or Q, T) is true."""
    added = mask_bias(seen)

    def with_bias(part: State) -> State:
        inner = {name: with_bias(value) for name, value in part.items() if isinstance(value, dict) and name != "cost"}
        return {**part, **inner, "bias": added}

    return with_bias(extra)


def last_state_read(memory: Memory, lengths: Tensor) -> Tensor:
    """The last of the first `lengths` states of each source.  (B,) -> (B, D)"""
    if not memory.states.shape[1]:  # a stream before its first chunk
        return memory.states.new_zeros(memory.rows, memory.states.shape[2])
    return memory.states[torch.arange(memory.rows, device=lengths.device), lengths - 1]
