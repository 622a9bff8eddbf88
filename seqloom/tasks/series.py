"""Series of vectors that are predicted one after another: pieces of music, signals. They have no end of their own."""

from __future__ import annotations

from seqloom.contracts import Codec
from seqloom.data.special_tokens import BOS
from seqloom.tasks.pairs import Pairs


class Series(Pairs):
    """A language model of vectors. Only its length limit ends an output."""

    bos, eos = BOS, None  # type: ignore[assignment]  # has no end
    targets_may_be_files = True

    def __init__(self, *, target: Codec):
        if not target.is_vectors:
            raise ValueError('target must be vectors, such as "piano_roll", "signal" or "numbers"; texts are "pairs"')
        super().__init__(target=target)
