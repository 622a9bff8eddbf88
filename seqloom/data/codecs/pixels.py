"""Pictures as outputs: every pixel is a token, line by line from left to right, in a pixel the channels.

A value is what the codec `image` reads: the path of a picture, an array of uint8, or an image of PIL. With `levels` = 2
a picture is black and white.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from math import prod
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np

from seqloom.arrays import as_numpy
from seqloom.contracts import Codec
from seqloom.data.codecs.files import is_path
from seqloom.data.codecs.pictures import MARGIN, pixels, png, side_by_side
from seqloom.data.special_tokens import SPECIAL
from seqloom.values import expect

FIRST = len(SPECIAL)  # the token of black


class Pixels(Codec):
    """A picture <-> int64 (H * W * C,), each value one of `levels`. Nothing is learned.

    `fit = "exact"` refuses pictures of another size, and grey ones where colour is expected; the others are those of
    the codec `image`.
    """

    names_files = True
    endless = True
    suffix: ClassVar[str] = ".png"
    canvas: tuple[int, int, int]

    def __init__(
        self,
        *,
        size: int = 28,
        width: int | None = None,
        levels: int = 2,
        fit: Literal["exact", "crop", "stretch", "pad"] = "exact",
        grey: bool = True,
        max_pixels: int = 50_000_000,
    ):
        expect(1, 1024, size=size, width=width)
        expect(2, 256, levels=levels)
        expect(1, 150_000_000, max_pixels=max_pixels)
        self.size, self.width, self.levels, self.fitting, self.grey = size, width, levels, fit, grey
        self.max_pixels, self.canvas = max_pixels, (size, width or size, 1 if grey else 3)
        self.vocabulary = FIRST + levels

    def fit(self, values: Iterable[Any]) -> Self:
        return self

    def encode(self, value: Any, source: Any = None) -> np.ndarray:
        return FIRST + self._levels(value).reshape(-1)

    def _levels(self, value: Any) -> np.ndarray:
        """int64 (H, W, C)"""
        height, width, channels = self.canvas
        mode: Any = "L" if channels == 1 else "RGB"
        found = pixels(value, mode=mode, height=height, width=width, fit=self.fitting, most=self.max_pixels)
        return found.astype(np.int64) * self.levels // 256

    def decode(self, values: Any, source: Any = None) -> np.ndarray:
        """The picture, uint8 (H, W) or (H, W, 3); grey where pixels are missing."""
        tokens = as_numpy(values).astype(np.int64)[: prod(self.canvas)]
        known = -((tokens - FIRST).clip(0, self.levels - 1) * -255 // (self.levels - 1))  # rounded up
        missing = np.full(prod(self.canvas) - len(tokens), MARGIN)
        picture = np.concatenate([known, missing]).astype(np.uint8).reshape(self.canvas)
        return picture[:, :, 0] if self.canvas[2] == 1 else picture

    def content(self, value: Any) -> bytes:
        """A hash of the tokens, wherever they come from."""
        return hashlib.blake2b(self.encode(value).astype(np.uint8).tobytes(), digest_size=32).digest()

    def cut(self, value: Any, longest: int) -> Any:
        """The whole value: every picture is as large as any other."""
        return value

    def line(self, value: Any) -> str:
        """The path, or the size of a picture that has none."""
        return super().line(value) if is_path(value) else self._described(value)

    def _described(self, value: Any) -> str:
        height, width, _ = self.canvas
        return f"(a picture of {width} x {height} pixels)"

    def pieces(self, values: Any) -> list[str]:
        """The levels."""
        return [str(token - FIRST) for token in as_numpy(values).tolist()]

    def side_by_side(self, values: Sequence[np.ndarray]) -> np.ndarray:
        return side_by_side(values)

    def to_file(self, value: Any) -> bytes:
        """A PNG file."""
        array = np.asarray(value)
        return png(array if array.ndim == 3 else array[:, :, None])

    def save(self, folder: Path, name: str) -> None:
        """Nothing was learned."""

    def load(self, folder: Path, name: str) -> Self:
        return self
