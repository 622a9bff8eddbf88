"""Modality drop-out: in training a source sometimes lacks one of its two inputs (Chung et al. 2017, section 3.3)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from seqloom.arrays import as_numpy, like
from seqloom.types import Padded


class MissingInputs:
    """A share of the sources lacks its own values or its part, equally often; a source with one input keeps it."""

    def __init__(self, *, part: str, share: float):
        self.part, self.share = part, share

    def __call__(self, source: Padded, chance: np.random.Generator) -> Padded:
        """The sources with some lengths set to 0."""
        part = source.parts[self.part]
        draws = chance.random(len(source.lengths))
        lengths, others = as_numpy(source.lengths), as_numpy(part.lengths)
        both = (lengths > 0) & (others > 0)
        first = both & (draws < self.share / 2)
        second = both & ~first & (draws < self.share)
        beside = replace(part, lengths=like(part.lengths, np.where(second, 0, others)))
        own = like(source.lengths, np.where(first, 0, lengths))
        return replace(source, lengths=own, parts={**source.parts, self.part: beside})
