"""Decoders within decoders: one that writes token by token, for another that adds to it (copying, the sentinel)."""

from collections.abc import Callable
from typing import Any

from seqloom.contracts import Decoder, Head

EXPECTED = "decoder must write token by token, after the whole source: take recurrent, transformer, gnmt or deep_att"


def inner_decoder(decoder: Callable[..., Decoder], **sizes: Any) -> Decoder:
    """The inner decoder, built by its factory; a ValueError if it cannot be one."""
    if getattr(getattr(decoder, "func", decoder), "reads_source", False):  # its constructor needs more than sizes
        raise ValueError(EXPECTED)
    made = decoder(**sizes)
    if isinstance(made, Head) or made.online or made.scores != "logits":
        raise ValueError(EXPECTED)
    return made
