"""Pictures as sources: photographs, drawings, scans.

A value is the path of a file, an array of uint8, (H, W) or (H, W, 3), or an image of PIL. Whatever its size, it becomes
`size` x `size` pixels, or `size` x `width`. Pixels stay uint8 as far as the encoder, which scales them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import numpy as np

from seqloom.contracts import Codec
from seqloom.data.codecs.files import is_path
from seqloom.data.codecs.pictures import Fit, pixels, png
from seqloom.data.codecs.random_shifts import RandomShifts
from seqloom.errors import SeqloomError
from seqloom.values import expect

REMEMBERED = 1000  # files, whose several captions mostly follow each other


class Image(Codec):
    """A picture -> uint8 (H, W, C), its rows from top to bottom: a source of H positions. Nothing is learned.

    Pictures of another shape lose what is left and right, or above and below, of their middle (`fit = "crop"`), are put
    out of proportion ("stretch"), or get grey margins ("pad"). In training they may be shifted by up to `shift` pixels
    and mirrored. A picture of more than `max_pixels` is refused before it is decoded.
    """

    names_files = True
    shape: tuple[int, int, int]

    def __init__(
        self,
        *,
        size: int = 64,
        width: int | None = None,
        fit: Fit = "crop",
        grey: bool = False,
        shift: int = 0,
        mirror: bool = False,
        max_pixels: int = 50_000_000,
    ):
        expect(1, 4096, size=size, width=width)
        expect(0, size - 1, shift=shift)
        expect(1, 150_000_000, max_pixels=max_pixels)
        self.size, self.width, self.fitting, self.grey, self.max_pixels = size, width, fit, grey, max_pixels
        self.shape = (size, width or size, 1 if grey else 3)
        if shift or mirror:
            self.augment = RandomShifts(shift=shift, mirror=mirror)
        self._known: dict[tuple[str, int, int], bytes] = {}  # path, time and bytes of a file -> its content

    def fit(self, values: Iterable[Any]) -> Self:
        return self

    def encode(self, value: Any, source: Any = None) -> np.ndarray:
        height, width, channels = self.shape
        mode: Any = "RGB" if channels == 3 else "L"
        return pixels(value, mode=mode, height=height, width=width, fit=self.fitting, most=self.max_pixels)

    def decode(self, values: Any, source: Any = None) -> Any:
        raise SeqloomError("a picture is not restored from an encoder's input: image can be a source, not a target")

    def content(self, value: Any) -> bytes:
        """A hash of the pixels, wherever they come from."""
        stamp = stamp_of(value)
        if stamp in self._known:
            return self._known[stamp]
        content = hashlib.blake2b(self.encode(value).tobytes(), digest_size=32).digest()
        if stamp is not None:
            self._known[stamp] = content
            if len(self._known) > REMEMBERED:
                self._known.pop(next(iter(self._known)))
        return content

    def cut(self, value: Any, longest: int) -> Any:
        """The whole value: every picture becomes as large as any other."""
        return value

    def line(self, value: Any) -> str:
        """The path, or the size of a picture that has none."""
        if is_path(value):
            return super().line(value)
        height, width, _ = self.encode(value).shape
        return f"(a picture, read as {width} x {height} pixels)"

    def picture(self, values: np.ndarray) -> bytes:
        return png(values)

    def save(self, folder: Path, name: str) -> None:
        """Nothing was learned."""

    def load(self, folder: Path, name: str) -> Self:
        return self


def stamp_of(value: Any) -> tuple[str, int, int] | None:
    """What tells whether a file has changed; None for values that are no files."""
    if not is_path(value):
        return None
    try:
        facts = os.stat(value)
    except (OSError, ValueError):  # reading it will say what is wrong
        return None
    return str(value), facts.st_mtime_ns, facts.st_size
