"""Series: outputs that have no end of their own, such as pieces of music, signals, and the pixels of pictures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from seqloom.contracts import Codec
from seqloom.data.special_tokens import BOS, PAD
from seqloom.tasks.pairs import Pairs
from seqloom.types import Batch, Encoded, Padded


class Series(Pairs):
    """A model of vectors, pixels or samples, with or without a source. Only its length limit ends an output."""

    bos, eos = BOS, None  # type: ignore[assignment]  # has no end
    targets_may_be_files = True
    at_once = False

    def __init__(self, *, target: Codec, source: Codec | None = None):
        if not (target.is_vectors or target.endless):
            raise ValueError(
                'target must have no end of its own, such as "piano_roll", "signal", "numbers" or "pixels"; texts are '
                '"pairs"'
            )
        super().__init__(target=target, source=source)

    def batch(
        self, sources: Sequence[Encoded] | None, targets: Sequence[np.ndarray], rows: Iterable[int] = ()
    ) -> Batch:
        if self.target.is_vectors:
            return super().batch(sources, targets, rows)
        return Batch(
            source=None if sources is None else Padded.stack(sources, PAD),
            inputs=Padded.stack([np.append(BOS, target[:-1]) for target in targets], PAD),
            targets=Padded.stack(targets, PAD),
            examples=tuple(rows),
        ).to("cpu")
