"""Sound from a pipe: headers of every kind, samples as they come."""

import io
import struct

import numpy as np
import pytest

from seqloom.data.codecs.wav import samples
from seqloom.errors import SeqloomError


def wav(body: bytes, *, code=1, channels=1, rate=8000, bits=16, size=None, before=b""):
    width = channels * bits // 8
    kind = struct.pack("<HHIIHH", code, channels, rate, rate * width, width, bits)
    size = len(body) if size is None else size
    return (
        b"RIFF\0\0\0\0WAVE" + before + b"fmt " + struct.pack("<I", 16) + kind + b"data" + struct.pack("<I", size) + body
    )


def read(data: bytes, seconds=0.1):
    rate, found = samples(io.BytesIO(data), seconds)
    pieces = list(found)
    return rate, pieces, np.concatenate(pieces) if pieces else np.zeros(0, np.float32)


def test_samples_are_those_that_were_written_in_chunks_of_a_tenth_of_a_second():
    values = np.arange(-1000, 1000, dtype=np.int16)
    rate, pieces, found = read(wav(values.tobytes()))
    assert rate == 8000
    assert [len(piece) for piece in pieces] == [800, 800, 400]
    np.testing.assert_array_equal(found, values.astype(np.float32) / 2**15)


@pytest.mark.parametrize(
    ("code", "bits", "dtype", "scale"), [(1, 32, "<i4", 2**31), (3, 32, "<f4", 1), (3, 64, "<f8", 1)]
)
def test_wider_samples(code, bits, dtype, scale):
    values = (np.linspace(-0.9, 0.9, 50) * scale).astype(dtype)
    _, _, found = read(wav(values.tobytes(), code=code, bits=bits))
    np.testing.assert_allclose(found, values / scale, atol=1e-7)


def test_channels_are_averaged():
    values = np.array([[100, 300], [-200, 200]], dtype=np.int16)
    _, _, found = read(wav(values.tobytes(), channels=2))
    np.testing.assert_allclose(found, np.array([200, 0]) / 2**15)


@pytest.mark.parametrize("size", [0, 0xFFFFFFFF, 0x7FFFFFFF])
def test_a_recorder_that_does_not_know_how_long_it_will_run(size):
    values = np.arange(100, dtype=np.int16)
    assert len(read(wav(values.tobytes(), size=size))[2]) == 100


def test_other_chunks_before_and_after_the_data_are_skipped():
    values = np.arange(10, dtype=np.int16)
    other = b"LIST" + struct.pack("<I", 3) + b"abc\0"
    data = wav(values.tobytes(), before=other) + other
    assert len(read(data)[2]) == 10


def test_half_a_sample_at_the_end_is_left_out_and_nothing_is_nothing():
    values = np.arange(10, dtype=np.int16)
    assert len(read(wav(values.tobytes() + b"\1", size=0))[2]) == 10
    assert len(read(wav(b""))[2]) == 0


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "not a WAV stream"),
        (b"fLaC....", "not a WAV stream"),
        (b"RIFF\0\0\0\0WAVEfmt ", "ends in its header"),
        (b"RIFF\0\0\0\0WAVEdata\0\0\0\0", "no format chunk"),
        (wav(b"\0" * 8, code=6, bits=8), "kind 6 with 8 bits"),
    ],
)
def test_what_is_not_a_wav_stream_is_refused_in_one_line(data, says):
    with pytest.raises(SeqloomError, match=says) as error:
        read(data)
    assert "\n" not in str(error.value)
