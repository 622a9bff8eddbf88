"""Sound as log-mel features: the energy of each frequency band, one frame every few milliseconds, as in Kaldi.

Frames are stacked (Sak et al. 2015), so that a model reads 33 positions per second instead of 100. A value is the path
of a file, (samples, rate), or samples at the codec's rate: float from -1 to 1 or integers, (n,) or (n, channels).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import numpy as np

from seqloom.contracts import Codec, Feed
from seqloom.data.codecs.files import is_path
from seqloom.data.codecs.moments import mean_and_deviation
from seqloom.data.codecs.sound import (
    BLOCK,
    RATES,
    content_of,
    from_file,
    from_python,
    library,
    resampler,
    samples_of,
)
from seqloom.data.codecs.spec_augment import SpecAugment
from seqloom.errors import SeqloomError, UnreadableError
from seqloom.storage.files import read_json, replace_file, saving, to_json
from seqloom.values import expect

CONSTANT = 1e-3  # a band with a smaller deviation is not scaled up


class Audio(Codec):
    """Sound -> float32 (T, mels * stack): frames of `window_ms`, one every `shift_ms`, `stack` of them per position.

    A recording lasts at most `max_seconds`; a stream may go on for ever.

    Each band has mean 0 and deviation 1 over the training set, not over one recording, whose end a stream does not
    know. Masks are those of SpecAugment: `frequency_width` is in bands, `time_width` in positions.
    """

    names_files = True

    def __init__(
        self,
        *,
        rate: int = 8000,
        mels: int = 40,
        window_ms: float = 25.0,
        shift_ms: float = 10.0,
        stack: int = 3,
        normalise: bool = True,
        frequency_masks: int = 0,
        frequency_width: int = 8,
        time_masks: int = 0,
        time_width: int = 10,
        time_share: float = 0.2,
        max_seconds: float = 600.0,
    ):
        expect(*RATES, rate=rate)
        expect(1, 1000, mels=mels, stack=stack)
        expect(1e-3, 10_000, window_ms=window_ms, shift_ms=shift_ms)
        expect(1e-3, 1e6, max_seconds=max_seconds)
        self.window, self.shift = int(rate * window_ms / 1000), int(rate * shift_ms / 1000)  # in samples
        if self.window < 2 or self.shift < 1:
            raise ValueError(f"window_ms = {window_ms}, shift_ms = {shift_ms}: too short for {rate} samples per second")
        self.rate, self.mels, self.stack, self.normalise = rate, mels, stack, normalise
        self.max_seconds = max_seconds
        self.window_ms, self.shift_ms = window_ms, shift_ms
        self.features = mels * stack
        self.seconds = stack * self.shift / rate
        if frequency_masks or time_masks:
            if not normalise:
                raise ValueError("normalise = false: masks are 0, which is the mean of normalised features only")
            self.augment = SpecAugment(
                bands=mels,
                frequency_masks=frequency_masks,
                frequency_width=frequency_width,
                time_masks=time_masks,
                time_width=time_width,
                time_share=time_share,
            )
        self._mean: np.ndarray | None = None if normalise else np.zeros(mels, dtype=np.float32)  # (mels,)
        self._deviation = np.ones(mels, dtype=np.float32)  # (mels,)

    def fit(self, values: Iterable[Any]) -> Self:
        if not self.normalise:
            return self
        found = mean_and_deviation(map(self._frames, values))
        if found is None:
            raise SeqloomError("audio was given nothing to learn from; expected at least one recording")
        mean, deviation = found  # (mels,) each
        self._mean = mean.astype(np.float32)
        self._deviation = np.where(deviation < CONSTANT, 1.0, deviation).astype(np.float32)
        return self

    def encode(self, value: Any, source: Any = None) -> np.ndarray:
        return self.stack_frames(self._frames(value))  # (T, F)

    def decode(self, values: Any, source: Any = None) -> Any:
        raise SeqloomError("sound cannot be restored from features: audio can be a source, not a target")

    def content(self, value: Any) -> Any:
        """A hash of the bytes of a file, wherever it is."""
        return content_of(value, self._samples)

    def cut(self, value: Any, longest: int) -> Any:
        """The samples of the first `max_seconds`, and their rate."""
        if is_path(value):
            return from_file(value, seconds=self.max_seconds, truncate=True)
        samples, rate = from_python(value, self.rate)
        return samples[: int(rate * self.max_seconds)], rate

    def feed(self) -> Feed:
        """Takes samples at the codec's rate, or (samples, rate)."""
        return AudioFeed(self)

    def pieces(self, values: Any) -> list[str]:
        """The time at which each position begins: "0.06 s"."""
        return [f"{place * self.stack * self.shift / self.rate:.2f} s" for place in range(len(values))]

    def save(self, folder: Path, name: str) -> None:
        path = self._path(folder, name)
        learned = {"mean": self._centre.tolist(), "deviation": self._deviation.tolist()}
        with saving(path):
            replace_file(path, to_json(learned))

    def load(self, folder: Path, name: str) -> Self:
        path = self._path(folder, name)
        learned = read_json(path, remedy="expected the statistics of audio")
        try:
            mean, deviation = (np.array(learned[key], dtype=np.float32) for key in ("mean", "deviation"))
        except (ValueError, KeyError, TypeError, OverflowError):
            mean = deviation = np.zeros(0, dtype=np.float32)
        fits = mean.shape == deviation.shape == (self.mels,) and np.isfinite([mean, deviation]).all()
        if not fits or deviation.min() <= 0:
            expected = f"expected a mean and a deviation for each of {self.mels} bands"
            raise SeqloomError(f"{path} has no statistics for this codec; {expected}")
        self._mean, self._deviation = mean, deviation
        return self

    def stack_frames(self, frames: np.ndarray) -> np.ndarray:
        """Normalised positions; the last frames, if too few for one, are dropped.  (n, mels) -> (n // stack, F)"""
        whole = frames[: len(frames) // self.stack * self.stack]
        return ((whole - self._centre) / self._deviation).reshape(-1, self.mels * self.stack)

    def bank(self) -> Any:
        """A filter bank: samples in, frames out."""
        kaldi = library("kaldi_native_fbank")
        options = kaldi.FbankOptions()
        options.frame_opts.samp_freq = self.rate
        options.frame_opts.frame_length_ms, options.frame_opts.frame_shift_ms = self.window_ms, self.shift_ms
        options.frame_opts.dither = 0.0  # noise that would differ each time
        options.frame_opts.snip_edges = True  # no frame reaches beyond an end
        options.mel_opts.num_bins = self.mels
        return kaldi.OnlineFbank(options)

    def _frames(self, value: Any) -> np.ndarray:
        """Log-mel energies, at least one position of them.  (n, mels)"""
        return take_frames(self.bank(), self._samples(value), self.rate, 0)

    def _samples(self, value: Any, content: bytes | None = None) -> np.ndarray:
        """Samples at the codec's rate, of one channel.  (n,)"""
        name, samples = samples_of(value, self.rate, self.max_seconds, content)
        if len(samples) < self.window + (self.stack - 1) * self.shift:
            least = f"{self.window_ms + (self.stack - 1) * self.shift_ms:g} ms"
            lasts = f"{1000 * len(samples) / self.rate:.3g} ms"
            raise UnreadableError(f"{name} lasts {lasts}: too short for one position; expected at least {least}")
        return samples

    @property
    def _centre(self) -> np.ndarray:
        if self._mean is None:
            raise SeqloomError("audio has no statistics yet; fit it or load it first")
        return self._mean

    @staticmethod
    def _path(folder: Path, name: str) -> Path:
        return Path(folder) / f"{name}.audio.json"


class AudioFeed(Feed):
    """Streamed sound: resampler, filter bank and stack each continue where they stopped."""

    def __init__(self, codec: Audio):
        self.codec, self.bank = codec, codec.bank()
        self.rate: int | None = None
        self.resampler: Any = None
        self.seen = 0  # frames
        self.rest = np.zeros((0, codec.mels), dtype=np.float32)  # frames of an incomplete stack

    def feed(self, raw: Any) -> np.ndarray:
        samples, rate = from_python(raw, self.codec.rate)
        if self.rate is None:
            self.rate = rate
            if rate != self.codec.rate:
                self.resampler = resampler("the stream", rate, self.codec.rate)
        if rate != self.rate:
            raise UnreadableError(
                f"the stream had {self.rate:,} samples per second and continues with {rate:,}; expected one rate"
            )
        if self.resampler is not None:
            samples = self.resampler.resample_chunk(samples)
        return self.positions(samples)

    def close(self) -> np.ndarray:
        nothing = np.zeros(0, dtype=np.float32)
        return self.positions(nothing if self.resampler is None else self.resampler.resample_chunk(nothing, last=True))

    def positions(self, samples: np.ndarray) -> np.ndarray:
        """(n,) -> (T, F)"""
        fresh = take_frames(self.bank, samples, self.codec.rate, self.seen)
        self.seen += len(fresh)
        frames = np.concatenate([self.rest, fresh])
        self.rest = frames[len(frames) // self.codec.stack * self.codec.stack :]
        return self.codec.stack_frames(frames)


def take_frames(bank: Any, samples: np.ndarray, rate: int, seen: int) -> np.ndarray:
    """The frames that further samples complete. The bank drops them.  (n,) -> (frames, mels)"""
    found = [np.zeros((0, bank.dim), dtype=np.float32)]
    for begin in range(0, len(samples), BLOCK):
        bank.accept_waveform(rate, samples[begin : begin + BLOCK].tolist())  # twice as fast as with an array
        ready = bank.num_frames_ready
        fresh = [bank.get_frame(number) for number in range(seen, ready)]
        found.append(np.array(fresh, dtype=np.float32).reshape(-1, bank.dim))
        bank.pop(ready - seen)
        seen = ready
    return np.concatenate(found)
