"""Films as sources: lips that speak, hands that sign; with `sound`, what was recorded beside them.

A value is the path of a file (NPZ, GIF, MP4 and others), an array of uint8, (T, H, W) or (T, H, W, 3), or a dictionary:
{"frames": array, "fps": 25, "sound": samples, "rate": 8000}, the keys of an NPZ file too. Of a source with sound either
may be missing, as in the path of a WAV file; then that input is empty.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, Self

import numpy as np

from seqloom.contracts import Codec, Feed
from seqloom.data.codecs.audio import Audio
from seqloom.data.codecs.files import is_path
from seqloom.data.codecs.films import Film, read_film
from seqloom.data.codecs.missing_inputs import MissingInputs
from seqloom.data.codecs.pictures import Fit, pillow, png, resize
from seqloom.errors import SeqloomError, UnreadableError
from seqloom.types import Composite, Encoded
from seqloom.values import expect

MOST_FRAMES, MOST_FPS = 100_000, 120  # of a file that is cut; of one that says how many it has per second
SHORTER = 0.25  # seconds by which a sound may end before its film


class Video(Codec):
    """A film -> uint8 (T, H, W, C), `fps` frames per second. Only the codec of sound learns anything.

    Frames become `size` x `size` pixels, or `size` x `width`, as the codec `image` has it. With `sound`, a source is a
    Composite with the part "sound"; in training one of the two is missing in a share `missing` of the sources, frames
    and sound equally often (modality drop-out, Chung et al. 2017, section 3.3). A film lasts at most `max_seconds`, and
    its frames have at most `max_pixels`.
    """

    names_files = True
    moving = True
    shape: tuple[int, int, int]

    def __init__(
        self,
        *,
        size: int = 32,
        width: int | None = None,
        fit: Fit = "crop",
        grey: bool = True,
        fps: float = 25.0,
        sound: Audio | None = None,
        missing: float = 0.0,
        max_seconds: float = 60.0,
        max_pixels: int = 4_000_000,
    ):
        expect(1, 4096, size=size, width=width)
        expect(0.1, 1000, fps=fps)
        expect(0, 1, missing=missing)
        expect(1e-3, 1e5, max_seconds=max_seconds)
        expect(1, 50_000_000, max_pixels=max_pixels)
        if missing and sound is None:
            raise ValueError(f"missing = {missing}: only films with sound can do without one of the two: set sound")
        self.size, self.width, self.fitting, self.grey, self.fps = size, width, fit, grey, fps
        self.sound, self.max_seconds, self.max_pixels = sound, max_seconds, max_pixels
        self.shape, self.seconds = (size, width or size, 1 if grey else 3), 1 / fps
        if sound is not None:
            self.parts = {"sound": sound}
        if missing:
            self.augment = MissingInputs(part="sound", share=missing)

    def fit(self, values: Iterable[Any]) -> Self:
        if self.sound is not None:
            self.sound.fit(self._sounds(values))
        return self

    def _sounds(self, values: Iterable[Any]) -> Iterator[tuple[np.ndarray, int]]:
        """The sounds of films that have one."""
        for value in values:
            if (sound := self._film(value).sound) is not None:
                yield sound

    def encode(self, value: Any, source: Any = None) -> np.ndarray:
        return self._frames(self._film(value))

    def read(self, value: Any) -> Encoded:
        film = self._film(value)
        if self.sound is None:
            return self._frames(film)
        heard = np.zeros((0, self.sound.features or 0), dtype=np.float32)
        return Composite(self._frames(film), {"sound": heard if film.sound is None else self.sound.encode(film.sound)})

    def decode(self, values: Any, source: Any = None) -> Any:
        raise SeqloomError("a film is not restored from an encoder's input: video can be a source, not a target")

    def content(self, value: Any) -> bytes:
        """A hash of the frames and samples, wherever they come from."""
        film = self._film(value)
        digest = hashlib.blake2b(digest_size=32)
        for array in (film.frames, *(film.sound or ())):
            digest.update(repr(np.shape(array)).encode() + (b"" if array is None else np.asarray(array).tobytes()))
        return digest.digest()

    def cut(self, value: Any, longest: int) -> Any:
        """Frames and samples of the first `max_seconds`."""
        film = self._film(value, truncate=True)
        frames = None if film.frames is None else film.frames[: int(self.max_seconds * (film.fps or self.fps))]
        found: dict[str, Any] = {"frames": frames, "fps": film.fps}
        if film.sound is not None:
            samples, rate = film.sound
            found |= {"sound": samples[: int(self.max_seconds * rate)], "rate": rate}
        return found

    def feed(self) -> Feed:
        """Takes frames at the codec's rate, without sound."""
        if self.sound is not None:
            raise SeqloomError("films with sound cannot be streamed: give whole sources to `predict`")
        return VideoFeed(self)

    def pieces(self, values: Any) -> list[str]:
        """The time at which each frame begins: "0.04 s"."""
        return [f"{place / self.fps:.2f} s" for place in range(len(values))]

    def line(self, value: Any) -> str:
        """The path, or what a film consists of that has none."""
        if is_path(value):
            return super().line(value)
        film = self._film(value)
        sound = f", {film.seconds_of_sound:.2g} s of sound" if film.sound is not None else ""
        return f"(a film of {0 if film.frames is None else len(film.frames):,} frames{sound})"

    def picture(self, values: np.ndarray) -> bytes:
        return png(values)

    def save(self, folder: Path, name: str) -> None:
        if self.sound is not None:
            self.sound.save(folder, name)

    def load(self, folder: Path, name: str) -> Self:
        if self.sound is not None:
            self.sound.load(folder, name)
        return self

    def _film(self, value: Any, truncate: bool = False) -> Film:
        """A film that has what is read, checked."""
        film = read_film(
            value,
            scale=partial(scale, shape=self.shape, fit=self.fitting),
            frames=MOST_FRAMES if truncate else int(self.max_seconds * MOST_FPS),
            pixels=self.max_pixels,
            seconds=inf if truncate else self.max_seconds,
            rate=8000 if self.sound is None else self.sound.rate,
        )
        count = 0 if film.frames is None else len(film.frames)
        if not count and (self.sound is None or film.sound is None):
            raise UnreadableError(f"{film.name} has no frames; expected at least one")
        seconds = count / (film.fps or self.fps)
        if not truncate and max(seconds, film.seconds_of_sound if self.sound else 0.0) > self.max_seconds:
            raise UnreadableError(
                f"{film.name} lasts more than {self.max_seconds:g} seconds (task.source.max_seconds): cut it with "
                "--truncate (in Python truncate=True), split it, or raise max_seconds"
            )
        if self.sound is not None and film.sound is not None and film.seconds_of_sound < seconds - SHORTER:
            lasts = f"its sound lasts {film.seconds_of_sound:.2f} s and its frames {seconds:.2f} s"
            raise UnreadableError(f"{film.name}: {lasts}; expected a sound as long as its film, or none")
        return film

    def _frames(self, film: Film) -> np.ndarray:
        """Frames at the codec's rate and size.  uint8 (T, H, W, C)"""
        if film.frames is None:
            return np.zeros((0, *self.shape), dtype=np.uint8)
        frames = film.frames
        if film.fps is not None and abs(film.fps - self.fps) > 1e-6 * self.fps:
            count = max(round(len(frames) * self.fps / film.fps), 1)
            middles = (np.arange(count) + 0.5) * film.fps / self.fps  # each the frame that is shown in its middle
            frames = frames[np.minimum(middles.astype(np.int64), len(frames) - 1)]
        return scale(frames, self.shape, self.fitting)


class VideoFeed(Feed):
    """Streamed frames."""

    def __init__(self, codec: Video):
        self.codec = codec

    def feed(self, raw: Any) -> np.ndarray:
        if not len(raw):
            return self.close()
        return self.codec.encode(raw)

    def close(self) -> np.ndarray:
        return np.zeros((0, *self.codec.shape), dtype=np.uint8)


def scale(frames: np.ndarray, shape: tuple[int, int, int], fit: Fit) -> np.ndarray:
    """Frames in another size or number of channels.  uint8 (T, H, W, 1 or 3) -> (T, *shape)"""
    if frames.shape[1:] == shape:
        return frames
    height, width, channels = shape
    library, mode = pillow().Image, "L" if channels == 1 else "RGB"
    images = (library.fromarray(frame[:, :, 0] if frame.shape[2] == 1 else frame).convert(mode) for frame in frames)
    return np.stack([np.asarray(resize(image, height, width, fit)).reshape(shape) for image in images])
