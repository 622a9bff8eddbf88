"""Sound as the signal itself: frames of neighbouring samples, one vector each.

A value is what `audio` reads: the path of a WAV or FLAC file, (samples, rate), or samples at the codec's rate. Chung,
Gulcehre, Cho & Bengio 2014, section 4.1, predict the next samples of speech from those before.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from seqloom.arrays import as_numpy
from seqloom.contracts import Codec
from seqloom.data.codecs.files import is_path
from seqloom.data.codecs.moments import mean_and_deviation
from seqloom.data.codecs.sound import LOUDEST, RATES, content_of, samples_of, to_wav
from seqloom.errors import SeqloomError, UnreadableError
from seqloom.storage.files import read_json, replace_file, saving, to_json
from seqloom.values import expect


class Signal(Codec):
    """Sound <-> float32 (T, frame), samples with mean 0 and deviation 1 over the training set.

    The last samples, if too few for a frame, are dropped. A recording lasts at most `max_seconds`.
    """

    names_files = True
    suffix: ClassVar[str] = ".wav"

    def __init__(self, *, rate: int = 8000, frame: int = 20, max_seconds: float = 600.0):
        expect(*RATES, rate=rate)
        expect(1, 10_000, frame=frame)
        expect(1e-3, 1e6, max_seconds=max_seconds)
        self.rate, self.frame, self.max_seconds = rate, frame, max_seconds
        self.features, self.seconds = frame, frame / rate
        self._mean, self._deviation = 0.0, 0.0

    def fit(self, values: Iterable[Any]) -> Self:
        found = mean_and_deviation(self._samples(value)[:, None] for value in values)
        if found is None:
            raise SeqloomError("signals were given nothing to learn from; expected at least one recording")
        self._mean, self._deviation = (float(each[0]) for each in found)
        if not self._deviation:
            raise SeqloomError("all recordings are silent: there is nothing to learn")
        return self

    def encode(self, value: Any, source: Any = None) -> np.ndarray:
        samples = self._samples(value)
        frames = samples[: len(samples) // self.frame * self.frame].reshape(-1, self.frame)
        return ((frames - self._mean) / self._fitted()).astype(np.float32)  # (T, frame)

    def decode(self, values: Any, source: Any = None) -> np.ndarray:
        """The samples.  (T * frame,)"""
        samples: np.ndarray = (as_numpy(values).reshape(-1) * self._fitted() + self._mean).astype(np.float32)
        return samples

    def content(self, value: Any) -> Any:
        """A hash of the bytes of a file, wherever it is."""
        return content_of(value, self._samples)

    def line(self, value: Any) -> str:
        return str(value) if is_path(value) else " ".join(f"{sample:.5g}" for sample in self._samples(value))

    def to_file(self, value: Any) -> bytes:
        """A WAV file of 16 bits; louder samples are cut."""
        return to_wav(self._samples(value), self.rate)

    def save(self, folder: Path, name: str) -> None:
        path = self._path(folder, name)
        learned = {"mean": self._mean, "deviation": self._fitted()}
        with saving(path):
            replace_file(path, to_json(learned))

    def load(self, folder: Path, name: str) -> Self:
        path = self._path(folder, name)
        learned = read_json(path, remedy="expected the statistics of a signal")
        found = [learned.get(key) for key in ("mean", "deviation")]
        mean, deviation = (float(each) if isinstance(each, (int, float)) else math.nan for each in found)
        if not abs(mean) <= LOUDEST or not 0 < deviation <= LOUDEST:
            raise SeqloomError(f"{path} has no statistics of a signal; expected a mean and a deviation above 0")
        self._mean, self._deviation = mean, deviation
        return self

    def _samples(self, value: Any, content: bytes | None = None) -> np.ndarray:
        """Samples at the codec's rate, of one channel, at least a frame of them.  (n,)"""
        name, samples = samples_of(value, self.rate, self.max_seconds, content)
        if len(samples) < self.frame:
            raise UnreadableError(f"{name} has {len(samples)} samples; expected at least a frame of {self.frame}")
        return samples

    def _fitted(self) -> float:
        if not self._deviation:
            raise SeqloomError("signals have no statistics yet; fit them or load them first")
        return self._deviation

    @staticmethod
    def _path(folder: Path, name: str) -> Path:
        return Path(folder) / f"{name}.signal.json"
