"""A decoder's step by its `forward`, for decoders that have one way to compute both."""

import torch
from torch import Tensor

from seqloom.contracts import Decoder
from seqloom.types import Memory, Padded, State


def step_by_forward(decoder: Decoder, token: Tensor, state: State, memory: Memory) -> tuple[Tensor, State]:
    """One step, as `forward` over one input.  (rows,) or (rows, V) -> (rows, V)"""
    lengths = torch.ones(len(token), dtype=torch.long, device=token.device)
    output = decoder(memory, Padded(token[:, None], lengths), state)
    return output.scores[:, 0], output.state
