"""Decoders within decoders: one that writes token by token, for another that has something to add."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from seqloom.contracts import Decoder, Head
from seqloom.types import Memory, Padded, State

EXPECTED = "decoder must write token by token, after it has read all: recurrent, transformer, gnmt"


def inner_decoder(decoder: Callable[..., Decoder], **sizes: Any) -> Decoder:
    """Made of its factory and what it must be told."""
    if getattr(getattr(decoder, "func", decoder), "reads_source", False):  # it would ask for more
        raise ValueError(EXPECTED)
    made = decoder(**sizes)
    if isinstance(made, Head) or made.online or made.scores != "logits":
        raise ValueError(EXPECTED)
    return made


def step_by_forward(decoder: Decoder, token: Tensor, state: State, memory: Memory) -> tuple[Tensor, State]:
    """A step as `forward` over one input.  (rows,) or (rows, V) -> (rows, V)"""
    lengths = torch.ones(len(token), dtype=torch.long, device=token.device)
    output = decoder(memory, Padded(token[:, None], lengths), state)
    return output.scores[:, 0], output.state
