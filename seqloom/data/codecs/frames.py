"""Films as outputs: every pixel of every frame is a token, in a frame as the codec `pixels` has it.

A value is what the codec `video` reads, without its sound: the path of a film (NPZ, GIF, MP4 and others), an array of
uint8, or a dictionary of arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import inf, prod
from typing import Any, ClassVar, Literal

import numpy as np

from seqloom.arrays import as_numpy
from seqloom.data.codecs.files import is_path
from seqloom.data.codecs.films import gif, read_film
from seqloom.data.codecs.pictures import side_by_side
from seqloom.data.codecs.pixels import Pixels
from seqloom.data.codecs.video import scale
from seqloom.errors import UnreadableError
from seqloom.values import expect

MOST_FRAMES = 10_000  # of a file that is cut


class Frames(Pixels):
    """A film <-> int64 (T * H * W * C,), of at most `frames` frames. Nothing is learned.

    `fps` is how many frames are shown per second in the files that are written.
    """

    suffix: ClassVar[str] = ".gif"
    frames: int

    def __init__(
        self,
        *,
        frames: int = 12,
        size: int = 16,
        width: int | None = None,
        levels: int = 2,
        fit: Literal["exact", "crop", "stretch", "pad"] = "exact",
        grey: bool = True,
        fps: float = 8.0,
        max_pixels: int = 4_000_000,
    ):
        super().__init__(size=size, width=width, levels=levels, fit=fit, grey=grey, max_pixels=max_pixels)
        expect(1, 1000, frames=frames)
        expect(0.1, 100, fps=fps)
        self.frames, self.fps = frames, fps

    def _levels(self, value: Any) -> np.ndarray:
        """int64 (T, H, W, C)"""
        return self._film(value).astype(np.int64) * self.levels // 256

    def _film(self, value: Any, truncate: bool = False) -> np.ndarray:
        """uint8 (T, H, W, C)"""
        film = read_film(
            value,
            scale=partial(self._scale, value),
            frames=MOST_FRAMES,
            pixels=self.max_pixels,
            seconds=inf,
            rate=8000,
        )
        if film.frames is None or not len(film.frames):
            raise UnreadableError(f"{film.name} has no frames; expected a film of at least one")
        if len(film.frames) > self.frames and not truncate:
            raise UnreadableError(
                f"{film.name} has {len(film.frames):,} frames; expected at most {self.frames} (task.target.frames): "
                "cut it, or set frames in the recipe"
            )
        return self._scale(value, film.frames[: self.frames])

    def _scale(self, value: Any, frames: np.ndarray) -> np.ndarray:
        height, width, channels = self.canvas
        if self.fitting != "exact":
            return scale(frames, self.canvas, self.fitting)
        name = str(value) if is_path(value) else "the film"
        if frames.shape[1:3] != (height, width):
            raise UnreadableError(
                f"{name} has frames of {frames.shape[2]:,} x {frames.shape[1]:,} pixels; expected {width:,} x "
                f'{height:,}, or set fit in the recipe, for example fit = "crop"'
            )
        if channels == 3 and frames.shape[3] == 1:
            raise UnreadableError(f'{name} is grey; expected a film in colour, or set grey = true or fit = "crop"')
        return scale(frames, self.canvas, "crop")  # from colour to grey, where that is wanted

    def decode(self, values: Any, source: Any = None) -> np.ndarray:
        """The film, uint8 (T, H, W) or (T, H, W, 3); of a last frame that is not whole the rest is grey."""
        tokens, area = as_numpy(values).astype(np.int64), prod(self.canvas)
        count = max(-(-len(tokens) // area), 1)
        return np.stack([super(Frames, self).decode(tokens[area * n : area * (n + 1)]) for n in range(count)])

    def cut(self, value: Any, longest: int) -> Any:
        """The first frames."""
        return self._film(value, truncate=True)

    def _described(self, value: Any) -> str:
        height, width, _ = self.canvas
        count = len(self._film(value))
        return f"(a film of {count:,} frame{'s' * (count != 1)} of {width} x {height} pixels)"

    def side_by_side(self, values: Sequence[np.ndarray]) -> np.ndarray:
        """Films of one length."""
        return np.stack([side_by_side(frames) for frames in zip(*values, strict=True)])

    def to_file(self, value: Any) -> bytes:
        """A GIF file."""
        return gif(np.asarray(value), self.fps)
