"""Sound files that promise too much, and small files with random damage, as files and from a pipe."""

from __future__ import annotations

import io
import random
import resource
import struct
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import soundfile

from seqloom.data.codecs.audio import Audio
from seqloom.data.codecs.wav import samples
from seqloom.errors import SeqloomError
from tests.faults.command import seqloom
from tests.faults.untrained import untrained, untrained_run

SHORT, LONG = 150, 12_000
EVERY = 300  # one of so many is a command
SECONDS, MEGABYTES = 2.0, 500  # that one file may take in this process
EXTREMES = (0, 1, 2, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFE, 0xFFFFFFFF)


def attack(number: int, folder: Path) -> str | None:
    chance = random.Random(number)
    content = BOMBS[number % len(BOMBS)]() if number < 2 * len(BOMBS) else damaged(chance)
    if number % EVERY == 0:
        return command(content, number // EVERY % 2 == 0, folder)
    codec = untrained("speech").task.source
    assert isinstance(codec, Audio)
    path = folder / "sound.wav"
    path.write_bytes(content)
    ways: list[Callable[[], object]] = [
        lambda: codec.encode(str(path)),
        lambda: codec.content(str(path)),
        lambda: codec.encode(codec.cut(str(path), 0)),
        lambda: from_pipe(codec, content),
    ]
    return measure(chance.choice(ways))


def command(content: bytes, piped: bool, folder: Path) -> str | None:
    run = untrained_run("speech", folder)
    (folder / "sound.wav").write_bytes(content)
    if piped:
        return seqloom("stream", run, folder=folder, stdin=content).problem()
    return seqloom("predict", run, folder=folder, stdin=b"sound.wav\n").problem()


def measure(way: Callable[[], object]) -> str | None:
    """What is wrong with the time, the memory or the result of reading."""
    began, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        found = way()
        if isinstance(found, np.ndarray) and not np.isfinite(found).all():
            return "features that are not finite"
    except SeqloomError as error:
        if "\n" in str(error):
            return f"more than one line: {error}"
    seconds, after = time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if seconds > SECONDS:
        return f"took {seconds:.1f} s"
    return f"took {(after - before) / 1024:.0f} MB" if after - before > 1024 * MEGABYTES else None


def from_pipe(codec: Audio, content: bytes) -> np.ndarray:
    rate, chunks = samples(io.BytesIO(content))
    feed = codec.feed()
    return np.concatenate([*(feed.feed((chunk, rate)) for chunk in chunks), feed.close()])


def sound(form: str = "WAV", seconds: float = 0.2, rate: int = 8000, subtype: str = "PCM_16") -> bytes:
    file = io.BytesIO()
    noise = np.random.default_rng(1).uniform(-0.5, 0.5, int(seconds * rate))
    soundfile.write(file, noise, rate, format=form, subtype=subtype)
    return file.getvalue()


def damaged(chance: random.Random) -> bytes:
    """A valid file with some bytes changed, most often in its header; cut off, or with bytes in between."""
    content = bytearray(sound(*chance.choice([("WAV",), ("FLAC",), ("WAV", 0.1, 16_000, "FLOAT"), ("AIFF",)])))
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(min(len(content), chance.choice([64, 64, len(content)])))
        kind = chance.choice(("flip", "number", "cut", "insert"))
        if kind == "flip":
            content[place] ^= 1 << chance.randrange(8)
        elif kind == "number":
            value, width = chance.choice(EXTREMES), chance.choice((2, 4))
            content[place : place + width] = (value & (256**width - 1)).to_bytes(
                width, chance.choice(("little", "big"))
            )
        elif kind == "cut":
            del content[max(place, 8) :]
        else:
            content[place:place] = chance.randbytes(chance.randint(1, 9))
    return bytes(content)


def flac_that_claims(count: int) -> bytes:
    """STREAMINFO has the number of samples in its last 36 bits before the checksum."""
    content = bytearray(sound("FLAC"))
    whole = int.from_bytes(content[18:26], "big")
    content[18:26] = (whole >> 36 << 36 | count).to_bytes(8, "big")
    return bytes(content)


def wav_of(
    rate: int = 8000, channels: int = 1, before: bytes = b"", size: int | None = None, body: bytes = b""
) -> bytes:
    width = 2 * channels
    kind = b"fmt " + struct.pack("<IHHIIHH", 16, 1, channels, rate, rate * width & 0xFFFFFFFF, width & 0xFFFF, 16)
    data = b"data" + struct.pack("<I", len(body) if size is None else size) + body
    rest = b"WAVE" + before + kind + data
    return b"RIFF" + struct.pack("<I", len(rest)) + rest


NOISE = np.random.default_rng(2).integers(-9999, 9999, 40_000).astype("<i2").tobytes()
BOMBS: list[Callable[[], bytes]] = [
    lambda: wav_of(before=b"JUNK" + struct.pack("<I", 0xFFFFFFF0), body=NOISE),
    lambda: flac_that_claims(2**36 - 1),
    lambda: wav_of(rate=1, body=NOISE),
    lambda: wav_of(rate=0xFFFFFFFF, body=NOISE),
    lambda: wav_of(channels=1024, body=NOISE),
    lambda: wav_of(channels=0xFFFF, body=NOISE),
    lambda: wav_of(channels=0, body=NOISE),
    lambda: wav_of(rate=0, body=NOISE),
    lambda: wav_of(rate=1000, body=NOISE * 40),
    lambda: wav_of(size=0xFFFFFFFF, body=NOISE),
    lambda: wav_of(before=b"LIST" + struct.pack("<I", 0x7FFFFFFF) + b"x" * 100),
    lambda: wav_of(before=(b"JUNK" + struct.pack("<I", 0)) * 50_000, body=NOISE),
    lambda: b"RIFF" + b"\xff" * 4 + b"WAVE" + b"\0" * 100_000,
    lambda: sound("WAV", 0.2, 8000, "FLOAT")[:-4] + struct.pack("<f", 3e38),
    lambda: sound("WAV", 0.2, 8000, "FLOAT")[:-4] + struct.pack("<f", float("nan")),
    lambda: sound("FLAC")[:60],
    lambda: b"",
]
