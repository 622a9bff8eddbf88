"""Random shifts and mirror images: pictures are augmented in training, as in He et al. 2016, section 4.2."""

from __future__ import annotations

import numpy as np

from seqloom.arrays import as_numpy, like
from seqloom.types import Padded


class RandomShifts:
    """Shifts of up to so many pixels each way, edges repeated; with `mirror`, every other picture is mirrored."""

    def __init__(self, *, shift: int, mirror: bool):
        self.shift, self.mirror = shift, mirror

    def __call__(self, source: Padded, chance: np.random.Generator) -> Padded:
        """The pictures, each changed in another way.  (B, H, W, C)"""
        values = as_numpy(source.values)
        count, height, width, _ = values.shape
        downs, rights = chance.integers(-self.shift, self.shift, (2, count), endpoint=True)
        mirrored = chance.random((count, 1)) < (0.5 if self.mirror else 0.0)
        rows = np.clip(np.arange(height) + downs[:, None], 0, height - 1)  # (B, H)
        columns = np.clip(np.arange(width) + rights[:, None], 0, width - 1)  # (B, W)
        columns = np.where(mirrored, columns[:, ::-1], columns)
        each = np.arange(count).reshape(-1, 1, 1)
        shifted = values[each, rows.reshape(count, -1, 1), columns.reshape(count, 1, -1)]  # (B, H, W, C)
        return Padded(like(source.values, shifted), source.lengths)
