"""Sound as the samples themselves: each is one of some levels, finer near silence (mu-law, ITU-T G.711).

A value is what `audio` reads: the path of a WAV or FLAC file, (samples, rate), or samples at the codec's rate. A sample
x from -1 to 1 becomes sign(x) ln(1 + mu |x|) / ln(1 + mu), cut into `levels` equal parts.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from seqloom.arrays import as_numpy
from seqloom.contracts import Codec
from seqloom.data.codecs.files import is_path
from seqloom.data.codecs.sound import RATES, content_of, samples_of, to_wav
from seqloom.data.special_tokens import SPECIAL
from seqloom.errors import UnreadableError
from seqloom.values import expect

FIRST = len(SPECIAL)  # the token of the lowest level


class Wave(Codec):
    """Sound <-> int64 (T,), one of `levels` for each sample. Nothing is learned; louder samples are cut.

    Before that sounds are multiplied by `gain`. A recording lasts at most `max_seconds`.
    """

    names_files = True
    endless = True
    suffix: ClassVar[str] = ".wav"

    def __init__(
        self, *, rate: int = 8000, levels: int = 256, mu: float = 255.0, gain: float = 1.0, max_seconds: float = 60.0
    ):
        expect(*RATES, rate=rate)
        expect(2, 65_536, levels=levels)
        expect(1e-3, 1e6, mu=mu, gain=gain, max_seconds=max_seconds)
        self.rate, self.levels, self.mu, self.gain, self.max_seconds = rate, levels, mu, gain, max_seconds
        self.vocabulary, self.seconds = FIRST + levels, 1 / rate

    def fit(self, values: Iterable[Any]) -> Self:
        return self

    def encode(self, value: Any, source: Any = None) -> np.ndarray:
        samples = (self._samples(value).astype(np.float64) * self.gain).clip(-1, 1)
        bent = np.sign(samples) * np.log1p(self.mu * np.abs(samples)) / np.log1p(self.mu)  # -1 to 1
        tokens: np.ndarray = FIRST + ((bent + 1) / 2 * self.levels).astype(np.int64).clip(0, self.levels - 1)
        return tokens

    def decode(self, values: Any, source: Any = None) -> np.ndarray:
        """The samples in the middle of each level, float32 (T,)."""
        levels = (as_numpy(values).astype(np.int64) - FIRST).clip(0, self.levels - 1)
        bent = (levels + 0.5) / self.levels * 2 - 1
        samples = np.sign(bent) * np.expm1(np.abs(bent) * np.log1p(self.mu)) / self.mu / self.gain
        return samples.astype(np.float32)

    def content(self, value: Any) -> Any:
        """A hash of the bytes of a file, wherever it is."""
        return content_of(value, self._samples)

    def cut(self, value: Any, longest: int) -> Any:
        """The first `max_seconds`."""
        _, samples = samples_of(value, self.rate, float("inf"))
        return samples[: int(self.max_seconds * self.rate)]

    def line(self, value: Any) -> str:
        if is_path(value):
            return str(value)
        _, samples = samples_of(value, self.rate, float("inf"))
        return f"(a sound of {len(samples) / self.rate:.2f} s)"

    def pieces(self, values: Any) -> list[str]:
        """The levels."""
        return [str(token - FIRST) for token in as_numpy(values).tolist()]

    def to_file(self, value: Any) -> bytes:
        """A WAV file of 16 bits; louder samples are cut."""
        _, samples = samples_of(value, self.rate, float("inf"))
        return to_wav(samples, self.rate)

    def save(self, folder: Path, name: str) -> None:
        """Nothing was learned."""

    def load(self, folder: Path, name: str) -> Self:
        return self

    def _samples(self, value: Any, content: bytes | None = None) -> np.ndarray:
        """Samples at the codec's rate, of one channel, at least one.  (n,)"""
        name, samples = samples_of(value, self.rate, self.max_seconds, content)
        if not len(samples):
            raise UnreadableError(f"{name} has no samples; expected at least one")
        return samples
