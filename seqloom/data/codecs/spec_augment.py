"""SpecAugment: in training, bands of frequency and spans of time are masked.

Park et al. 2019, section 2, without time warping. A mask is 0: the mean, since features are normalised.
"""

from __future__ import annotations

import numpy as np

from seqloom.arrays import like, namespace
from seqloom.types import Padded


class SpecAugment:
    """Masks of 0 to `frequency_width` bands, and of 0 to `time_width` positions, at most `time_share` of an example.

    A vector is several frames of `bands` components: the same bands are masked in all of them.
    """

    def __init__(
        self,
        *,
        bands: int,
        frequency_masks: int,
        frequency_width: int,
        time_masks: int,
        time_width: int,
        time_share: float,
    ):
        if min(frequency_masks, time_masks) < 0:
            raise ValueError(f"frequency_masks = {frequency_masks}, time_masks = {time_masks}: expected 0 or more")
        if not 1 <= frequency_width <= bands:
            raise ValueError(f"frequency_width = {frequency_width}: expected 1 to {bands}, the number of mels")
        if time_width < 1 or not 0 < time_share <= 1:
            raise ValueError(f"time_width = {time_width}, time_share = {time_share}: expected 1 or more, and 0 to 1")
        self.bands = bands
        self.frequency_masks, self.frequency_width = frequency_masks, frequency_width
        self.time_masks, self.time_width, self.time_share = time_masks, time_width, time_share

    def __call__(self, source: Padded, chance: np.random.Generator) -> Padded:
        """The source with other masks for each example.  (B, T, F)"""
        rows, width, features = source.values.shape
        kept = np.ones((rows, width, features // self.bands, self.bands), dtype=bool)
        for row, length in enumerate(source.lengths.tolist()):
            for begin, end in spans(chance, self.frequency_masks, self.frequency_width, self.bands):
                kept[row, :, :, begin:end] = False
            longest = min(self.time_width, int(self.time_share * length))
            for begin, end in spans(chance, self.time_masks, longest, length):
                kept[row, begin:end] = False
        mask = like(source.values, kept.reshape(rows, width, features))
        return Padded(namespace(source.values).where(mask, source.values, 0.0), source.lengths)


def spans(chance: np.random.Generator, count: int, longest: int, room: int) -> list[tuple[int, int]]:
    """Begins and ends of random spans: each of 0 to `longest` positions, anywhere in `room`."""
    widths = chance.integers(0, longest, count, endpoint=True)
    begins = chance.integers(0, room - widths, endpoint=True)
    return list(zip(begins.tolist(), (begins + widths).tolist()))
