"""WAV from a pipe: the header, then the samples as they arrive."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import count
from typing import BinaryIO

import numpy as np

from seqloom.data.codecs.sound import UNKNOWN_SIZE, check_format
from seqloom.errors import SeqloomError

PCM, FLOAT, EXTENSIBLE = 1, 3, 0xFFFE
KINDS = {(PCM, 16): ("<i2", 2**15), (PCM, 32): ("<i4", 2**31), (FLOAT, 32): ("<f4", 1), (FLOAT, 64): ("<f8", 1)}

MOST_BEFORE, MOST_CHUNKS = 2**24, 1000  # bytes and chunks before the samples


def samples(file: BinaryIO, seconds: float = 0.1) -> tuple[int, Iterator[np.ndarray]]:
    """The sample rate, and chunks of samples from -1 to 1, averaged over channels.  (n,) float32 each"""
    if file.read(4) != b"RIFF" or len(file.read(4)) < 4 or file.read(4) != b"WAVE":
        raise SeqloomError("standard input is not a WAV stream: pipe a .wav file, or `arecord -f S16_LE -r RATE`")
    kind, before = None, 0
    for number in count():
        name, size = header(file)
        before += 8 + size
        if name == b"data":
            break
        if before > MOST_BEFORE or number > MOST_CHUNKS:
            raise SeqloomError("the WAV stream has too much before its samples: it is damaged, write it again")
        body = file.read(size + size % 2)
        if name == b"fmt " and len(body) >= 16:
            kind = struct.unpack("<HHIIHH", body[:16])
            if kind[0] == EXTENSIBLE and len(body) >= 26:
                kind = (struct.unpack("<H", body[24:26])[0], *kind[1:])
    if kind is None:
        raise SeqloomError("the WAV stream has no format chunk before its data: it is damaged, write it again")
    code, channels, rate, _, _, bits = kind
    check_format("the WAV stream", rate, channels)
    if (code, bits) not in KINDS:
        known = "16 or 32 bit integers, 32 or 64 bit floats"
        raise SeqloomError(f"the WAV stream has samples of kind {code} with {bits} bits: expected {known}")
    dtype, largest = KINDS[code, bits]
    return rate, chunks(file, dtype, largest, channels, max(int(rate * seconds), 1), size)


def header(file: BinaryIO) -> tuple[bytes, int]:
    """The name and size of the next chunk of the file."""
    found = file.read(8)
    if len(found) < 8:
        raise SeqloomError("the WAV stream ends in its header: it is damaged, write it again")
    return found[:4], struct.unpack("<I", found[4:])[0]


def chunks(file: BinaryIO, dtype: str, largest: int, channels: int, frames: int, size: int) -> Iterator[np.ndarray]:
    """Samples until the end. A recorder that does not know its length in advance writes a size of 0, or a huge one."""
    width = np.dtype(dtype).itemsize * channels
    left = size if 0 < size < UNKNOWN_SIZE else None
    while left is None or left >= width:
        data = file.read(frames * width if left is None else min(frames * width, left))
        data = data[: len(data) // width * width]
        if not data:
            return
        left = None if left is None else left - len(data)
        with np.errstate(all="ignore"):  # samples that are not finite are refused later
            found = np.frombuffer(data, dtype).astype(np.float32) / np.float32(largest)
            mean = found.reshape(-1, channels).mean(1, dtype=np.float32)
        yield mean
