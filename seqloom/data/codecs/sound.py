"""Sound as samples: of WAV and FLAC files and of arrays, one channel, resampled."""

from __future__ import annotations

import hashlib
import io
import os
import sys
import wave
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from seqloom.data.codecs.files import is_path, read_content
from seqloom.errors import SeqloomError, UnreadableError, printable, shown

FULL_SCALE = {"int16": 2**15, "int32": 2**31}  # the integer that is 1.0
LARGEST = 2**15 - 1  # of 16 bits
CHANNELS = 64  # at most: a longer second axis must be time
RATES = (1_000, 384_000)  # samples per second, least and most: beyond, resampling would multiply a file
MOST_BYTES, KIND = 2**29, "recording"  # of a file, and what it should be
BLOCK = 2**16  # samples decoded at once: what a header promises is not believed
LOUDEST = 2.0**20  # far beyond full scale, and its square is still a number
UNKNOWN_SIZE = 2**31 - 2**20  # a recorder that writes to a pipe puts this size, or a larger one, into the header
RESAMPLED: set[tuple[int, int]] = set()  # rates, before and after, that were reported


def from_file(
    path: Any, content: bytes | None = None, *, seconds: float = float("inf"), truncate: bool = False
) -> tuple[np.ndarray, int]:
    """The samples of a file and their rate. It is refused where it lasts longer than `seconds`, or cut there."""
    content = read_content(path, MOST_BYTES, KIND) if content is None else content
    expected = "expected a complete WAV or FLAC file"
    if content[:4] == b"RIFF" and len(content) < int.from_bytes(content[4:8], "little") + 8 < UNKNOWN_SIZE:
        raise UnreadableError(f"{path} is cut off: its header promises more; {expected}")  # libsndfile accepts it
    soundfile = library("soundfile")
    try:
        with soundfile.SoundFile(Content(content)) as file:
            rate = check_format(str(path), file.samplerate, file.channels)
            samples = read_blocks(file, str(path), rate * seconds)
            lacks = file.format == "FLAC" and len(samples) < min(file.frames, rate * seconds)
    except soundfile.SoundFileError as error:
        reason = getattr(error, "error_string", str(error)).removeprefix("Error : ").rstrip(".")
        raise UnreadableError(f"{path} is not a readable sound file ({reason}); {expected}") from None
    if lacks:
        raise UnreadableError(f"{path} is cut off: its header promises more; {expected}")
    if len(samples) > rate * seconds and not truncate:
        raise too_many_seconds(str(path), seconds)
    return samples[: int(min(rate * seconds, len(samples)))], rate


class Content(io.BytesIO):
    """Bytes to decode. Damaged ones may send the decoder before their beginning: it stays there."""

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return super().seek(max(offset, 0) if whence == os.SEEK_SET else offset, whence)


def read_blocks(file: Any, name: str, most: float) -> np.ndarray:
    """The mean of the channels, block by block, until the file ends or has more samples than `most`.  (n,)"""
    blocks, count = [np.zeros(0, dtype=np.float32)], 0
    while count <= most and len(block := file.read(BLOCK, dtype="float32", always_2d=True)):
        blocks.append(mono(block, name))
        count += len(block)
    return np.concatenate(blocks)


def samples_of(value: Any, rate: int, seconds: float, content: bytes | None = None) -> tuple[str, np.ndarray]:
    """The name of a sound, and its samples at this rate, of one channel, for so many seconds at most."""
    name = str(value) if is_path(value) else "the sound"
    samples, own = from_file(value, content, seconds=seconds) if is_path(value) else from_python(value, rate)
    if len(samples) > own * seconds:
        raise too_many_seconds(name, seconds)
    if not len(samples):
        raise UnreadableError(f"{name} is empty: it has no sample; expected a recording")
    return name, samples if own == rate else resampler(name, own, rate).resample_chunk(samples, last=True)


def content_of(value: Any, read: Callable[[Any, bytes | None], Any]) -> Any:
    """What identifies a sound that can be `read`: a hash of the bytes of a file, wherever it is."""
    content = read_content(value, MOST_BYTES, KIND) if is_path(value) else None
    read(value, content)
    return value if content is None else hashlib.blake2b(content, digest_size=32).digest()


def check_format(name: str, rate: int, channels: int) -> int:
    """The rate, unless it or the number of channels cannot be meant."""
    least, most = RATES
    if not least <= rate <= most:
        raise UnreadableError(f"{name} has {rate:,} samples per second; expected {least:,} to {most:,}")
    if not 1 <= channels <= CHANNELS:
        raise UnreadableError(f"{name} has {channels:,} channels; expected 1 to {CHANNELS}")
    return rate


def too_many_seconds(name: str, seconds: float) -> UnreadableError:
    return UnreadableError(
        f"{name} lasts more than {seconds:g} seconds (max_seconds): cut it with --truncate (in Python "
        "truncate=True), split it, or raise max_seconds in the recipe or the run's config.toml"
    )


def from_python(value: Any, rate: int) -> tuple[np.ndarray, int]:
    """The samples of an array, or of (samples, rate), and their rate."""
    expected = "expected samples, or (samples, rate)"
    if isinstance(value, tuple):
        if len(value) != 2 or not isinstance(value[1], (int, float, np.number)) or not 0 < value[1] < 1e9:
            raise UnreadableError(f"the sound {shown(value)} is not (samples, rate); {expected}")
        value, rate = value[0], check_format("the sound", int(value[1]), 1)
    try:
        array = np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)
    except ValueError:  # lists of different lengths
        raise UnreadableError(f"the sound {shown(value)} is ragged; {expected}") from None
    if array.ndim not in (1, 2) or (array.ndim == 2 and array.shape[1] > CHANNELS):
        raise UnreadableError(f"the sound has the shape {list(array.shape)}; expected [samples] or [samples, channels]")
    if array.dtype.kind != "f" and array.dtype.name not in FULL_SCALE and array.size:
        kinds = "floats from -1 to 1, int16 or int32"
        raise UnreadableError(f"the sound {shown(value)} holds {array.dtype} values; expected {kinds}")
    samples = array.astype(np.float32) / np.float32(FULL_SCALE.get(array.dtype.name, 1))
    return mono(samples, "the sound"), rate


def mono(samples: np.ndarray, name: str) -> np.ndarray:
    """The mean of the channels.  (n,) or (n, channels) -> (n,)"""
    with np.errstate(all="ignore"):  # what is not finite is refused below
        samples = samples.mean(1, dtype=np.float32) if samples.ndim == 2 else samples
    if not np.isfinite(samples).all():
        raise UnreadableError(f"{name} has samples that are not finite; expected numbers from -1 to 1")
    if len(samples) and np.abs(samples).max() > LOUDEST:
        raise UnreadableError(f"{name} has a sample of {np.abs(samples).max():.3g}; expected numbers from -1 to 1")
    return samples


def resampler(name: str, before: int, after: int) -> Any:
    """A stream from one sample rate to another, which is reported once per process."""
    if (before, after) not in RESAMPLED:
        RESAMPLED.add((before, after))
        message = f"{name} has {before:,} samples per second; like all of that rate it is resampled to {after:,}."
        print(printable(message), file=sys.stderr)
    return library("soxr").ResampleStream(before, after, 1, dtype="float32")


def to_wav(samples: np.ndarray, rate: int) -> bytes:
    """A WAV file of 16 bits; louder samples are cut.  (n,)"""
    content = io.BytesIO()
    with wave.open(content, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((samples.clip(-1, 1) * LARGEST).round().astype("<i2").tobytes())
    return content.getvalue()


def library(name: str) -> Any:
    """A library of the extra "audio"."""
    try:
        return import_module(name)
    except ImportError:
        raise SeqloomError('sound needs the extra "audio": pip install "seqloom[audio]"') from None
