"""Sound as log-mel features: the energy of each band of frequencies, a frame every few milliseconds, as Kaldi has it.

Frames are stacked (Sak et al. 2015), so that a model reads 33 positions a second and not 100. A value is the path of a
file, (samples, rate), or samples at the codec's rate: float from -1 to 1 or integers, (n,) or (n, channels).
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, Self

import numpy as np

from seqloom.contracts import Codec, Feed
from seqloom.data.codecs.spec_augment import SpecAugment
from seqloom.errors import SeqloomError, UnreadableError, shown
from seqloom.storage.files import replace_file, saving, to_json

FULL = {"int16": 2**15, "int32": 2**31}  # what an integer sample is a part of
SILENT = 1e-3  # a band that deviates less says nothing, and is not made to shout
CHANNELS = 64  # more are no channels, but samples along the other axis
UNKNOWN = 2**31 - 2**20  # a recorder that writes to a pipe gives its file this size, or a larger one
SAID: set[tuple[int, int]] = set()  # rates that were resampled, and to which


class Audio(Codec):
    """Sound -> float32 (T, mels * stack): frames of `window_ms`, one every `shift_ms`, `stack` of them a position.

    Each band has mean 0 and deviation 1 over the training set, never over one recording: a stream does not know its
    end. Masks are SpecAugment's: `frequency_width` is in bands, `time_width` in positions.
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
    ):
        if min(rate, mels, stack) < 1:
            raise ValueError(f"rate = {rate}, mels = {mels}, stack = {stack}: expected 1 or more")
        self.window, self.shift = int(rate * window_ms / 1000), int(rate * shift_ms / 1000)  # in samples
        if self.window < 2 or self.shift < 1:
            raise ValueError(f"window_ms = {window_ms}, shift_ms = {shift_ms}: too short for {rate} samples a second")
        self.rate, self.mels, self.stack, self.normalise = rate, mels, stack, normalise
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
        count, mean, scatter = 0, np.zeros(self.mels), np.zeros(self.mels)
        for value in values:  # Chan, Golub & LeVeque 1979: no sum of large squares
            frames = self._frames(value).astype(np.float64)  # (n, mels)
            centre, total = frames.mean(0), count + len(frames)
            scatter += ((frames - centre) ** 2).sum(0) + (centre - mean) ** 2 * count * len(frames) / total
            mean += (centre - mean) * len(frames) / total
            count = total
        if not count:
            raise SeqloomError("audio was given nothing to learn from; expected at least one recording")
        deviation = np.sqrt(scatter / count)
        self._mean = mean.astype(np.float32)
        self._deviation = np.where(deviation < SILENT, 1.0, deviation).astype(np.float32)
        return self

    def encode(self, value: Any, source: Any = None) -> np.ndarray:
        return self.stacked(self._frames(value))  # (T, F)

    def decode(self, values: Any, source: Any = None) -> Any:
        raise SeqloomError("features do not give a sound back: audio can be a source, not a target")

    def content(self, value: Any) -> Any:
        """The bytes of a file, wherever it lies."""
        if not is_path(value):
            self._samples(value)
            return value
        content = content_of(value)
        self._samples(value, content)
        return hashlib.blake2b(content, digest_size=32).digest()

    def feed(self) -> Feed:
        """Takes samples at the codec's rate, or (samples, rate)."""
        return Hearing(self)

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
        try:
            learned = json.loads(path.read_text(encoding="utf-8"))
            mean, deviation = (np.array(learned[key], dtype=np.float32) for key in ("mean", "deviation"))
        except OSError as error:
            raise SeqloomError(f"{path} cannot be read: {error.strerror}; expected the statistics of audio") from None
        except (ValueError, KeyError, TypeError):
            mean = deviation = np.zeros(0, dtype=np.float32)
        fits = mean.shape == deviation.shape == (self.mels,) and np.isfinite([mean, deviation]).all()
        if not fits or deviation.min() <= 0:
            expected = f"expected a mean and a deviation of {self.mels} bands each, as was saved"
            raise SeqloomError(f"{path} has no statistics of this audio; {expected}")
        self._mean, self._deviation = mean, deviation
        return self

    def stacked(self, frames: np.ndarray) -> np.ndarray:
        """Normalised positions; frames at the end that fill none are dropped.  (n, mels) -> (n // stack, F)"""
        whole = frames[: len(frames) // self.stack * self.stack]
        return ((whole - self._centre) / self._deviation).reshape(-1, self.mels * self.stack)

    def bank(self) -> Any:
        """What makes frames of samples as they come."""
        kaldi = library("kaldi_native_fbank")
        options = kaldi.FbankOptions()
        options.frame_opts.samp_freq = self.rate
        options.frame_opts.frame_length_ms, options.frame_opts.frame_shift_ms = self.window_ms, self.shift_ms
        options.frame_opts.dither = 0.0  # noise, which no two readings would share
        options.frame_opts.snip_edges = True  # no frame looks beyond an end
        options.mel_opts.num_bins = self.mels
        return kaldi.OnlineFbank(options)

    def _frames(self, value: Any) -> np.ndarray:
        """Log-mel energies of the whole, at least one position of them.  (n, mels)"""
        return drawn(self.bank(), self._samples(value), self.rate, 0)

    def _samples(self, value: Any, content: bytes | None = None) -> np.ndarray:
        """Samples at the codec's rate, of one channel.  (n,)"""
        name = str(value) if is_path(value) else "the sound"
        samples, rate = from_file(value, content) if is_path(value) else from_python(value, self.rate)
        if not len(samples):
            raise UnreadableError(f"{name} is empty: it has no sample; expected a recording")
        if rate != self.rate:
            say_resampled(name, rate, self.rate)
            samples = resampler(rate, self.rate).resample_chunk(samples, last=True)
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


class Hearing(Feed):
    """Sound as it comes: resampler, frames and stack each go on from where they stopped."""

    def __init__(self, codec: Audio):
        self.codec, self.bank = codec, codec.bank()
        self.rate: int | None = None
        self.resampler: Any = None
        self.seen = 0  # frames
        self.rest = np.zeros((0, codec.mels), dtype=np.float32)  # frames that wait for more of their stack

    def feed(self, raw: Any) -> np.ndarray:
        samples, rate = from_python(raw, self.codec.rate)
        if self.rate is None:
            self.rate = rate
            if rate != self.codec.rate:
                say_resampled("the stream", rate, self.codec.rate)
                self.resampler = resampler(rate, self.codec.rate)
        if rate != self.rate:
            raise UnreadableError(
                f"the stream had {self.rate:,} samples a second and goes on with {rate:,}; expected one rate"
            )
        if self.resampler is not None:
            samples = self.resampler.resample_chunk(samples)
        return self.positions(samples)

    def close(self) -> np.ndarray:
        nothing = np.zeros(0, dtype=np.float32)
        return self.positions(nothing if self.resampler is None else self.resampler.resample_chunk(nothing, last=True))

    def positions(self, samples: np.ndarray) -> np.ndarray:
        """(n,) -> (T, F)"""
        fresh = drawn(self.bank, samples, self.codec.rate, self.seen)
        self.seen += len(fresh)
        frames = np.concatenate([self.rest, fresh])
        self.rest = frames[len(frames) // self.codec.stack * self.codec.stack :]
        return self.codec.stacked(frames)


def drawn(bank: Any, samples: np.ndarray, rate: int, seen: int) -> np.ndarray:
    """The frames that further samples complete, which the bank then forgets.  (n,) -> (frames, mels)"""
    bank.accept_waveform(rate, samples.tolist())  # which it takes twice as fast as an array
    ready = bank.num_frames_ready
    fresh = [bank.get_frame(number) for number in range(seen, ready)]
    frames = np.array(fresh, dtype=np.float32).reshape(-1, bank.dim)
    bank.pop(ready - seen)
    return frames


# Samples


def is_path(value: Any) -> bool:
    return isinstance(value, (str, os.PathLike))


def content_of(path: Any) -> bytes:
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise UnreadableError(f"{path}: there is no such file; expected the path of a recording") from None
    except (OSError, ValueError) as error:  # a null byte is no OSError
        reason = getattr(error, "strerror", None) or error
        raise UnreadableError(f"{path} cannot be read: {reason}; expected the path of a recording") from None


def from_file(path: Any, content: bytes | None = None) -> tuple[np.ndarray, int]:
    """The samples of a file and their rate."""
    content = content_of(path) if content is None else content
    expected = "expected a whole WAV or FLAC file"
    if content[:4] == b"RIFF" and len(content) < int.from_bytes(content[4:8], "little") + 8 < UNKNOWN:
        raise UnreadableError(f"{path} is cut off: its header promises more; {expected}")  # libsndfile would not mind
    soundfile = library("soundfile")
    try:
        samples, rate = soundfile.read(io.BytesIO(content), dtype="float32", always_2d=True)
    except soundfile.SoundFileError as error:
        reason = getattr(error, "error_string", str(error)).removeprefix("Error : ").rstrip(".")
        raise UnreadableError(f"{path} is no sound that can be read ({reason}); {expected}") from None
    return mono(samples, str(path)), rate


def from_python(value: Any, rate: int) -> tuple[np.ndarray, int]:
    """The samples of an array, or of (samples, rate), and their rate."""
    expected = "expected samples, or (samples, rate)"
    if isinstance(value, tuple):
        if len(value) != 2 or not isinstance(value[1], (int, float, np.number)) or not 1 <= value[1] < 1e7:
            raise UnreadableError(f"the sound {shown(value)} has no samples and rate; {expected}")
        value, rate = value[0], int(value[1])
    try:
        array = np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)
    except ValueError:  # lists of different lengths
        raise UnreadableError(f"the sound {shown(value)} is ragged; {expected}") from None
    if array.ndim not in (1, 2) or (array.ndim == 2 and array.shape[1] > CHANNELS):
        raise UnreadableError(f"the sound has the shape {list(array.shape)}; expected [samples] or [samples, channels]")
    if array.dtype.kind != "f" and array.dtype.name not in FULL and array.size:
        kinds = "floats from -1 to 1, int16 or int32"
        raise UnreadableError(f"the sound {shown(value)} holds {array.dtype} values; expected {kinds}")
    samples = array.astype(np.float32) / np.float32(FULL.get(array.dtype.name, 1))
    return mono(samples, "the sound"), rate


def mono(samples: np.ndarray, name: str) -> np.ndarray:
    """The mean of the channels.  (n,) or (n, channels) -> (n,)"""
    samples = samples.mean(1, dtype=np.float32) if samples.ndim == 2 else samples
    if not np.isfinite(samples).all():
        raise UnreadableError(f"{name} has samples that are not finite; expected numbers from -1 to 1")
    return samples


def resampler(before: int, after: int) -> Any:
    return library("soxr").ResampleStream(before, after, 1, dtype="float32")


def say_resampled(name: str, before: int, after: int) -> None:
    """Once a process for each rate."""
    if (before, after) not in SAID:
        SAID.add((before, after))
        told = f"{name} has {before:,} samples a second; like all of that rate it is resampled to {after:,}."
        print(told, file=sys.stderr)


def library(name: str) -> Any:
    """One of the libraries of the extra, if it is there."""
    try:
        return import_module(name)
    except ImportError:
        raise SeqloomError('sound needs the extra "audio": pip install "seqloom[audio]"') from None
