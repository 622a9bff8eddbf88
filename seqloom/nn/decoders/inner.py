"""Decoders within decoders: one that writes token by token, for another that adds to it (copying, the sentinel)."""

from collections.abc import Callable
from typing import Any

from seqloom.contracts import Decoder, Head
from seqloom.types import Memory

EXPECTED = "decoder must write token by token, after the whole source: take recurrent, transformer, gnmt or deep_att"


class OuterDecoder(Decoder):
    """A decoder around another: what holds for the inner one holds for it."""

    decoder: Decoder

    @property
    def grows(self) -> bool:  # type: ignore[override]  # as the inner decoder does
        return self.decoder.grows

    @property
    def longest(self) -> int | None:
        """How many positions the inner decoder has learned, if it learns them."""
        return getattr(self.decoder, "longest", None)

    def prepare(self, memory: Memory) -> Memory:
        return self.decoder.prepare(memory)


def inner_decoder(decoder: Callable[..., Decoder], **sizes: Any) -> Decoder:
    """The inner decoder, built by its factory; a ValueError if it cannot be one."""
    if getattr(getattr(decoder, "func", decoder), "reads_source", False):  # its constructor needs more than sizes
        raise ValueError(EXPECTED)
    made = decoder(**sizes)
    if isinstance(made, Head) or made.online or made.scores != "logits":
        raise ValueError(EXPECTED)
    return made
