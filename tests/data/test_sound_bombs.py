"""Sound that promises more than it has, or is more than anybody meant: refused in one line, at little cost."""

import io
import struct
import tracemalloc

import numpy as np
import pytest
import soundfile

from seqloom.data.codecs import sound
from seqloom.data.codecs.audio import Audio
from seqloom.data.codecs.wav import samples
from seqloom.errors import SeqloomError
from tests.faults.attacks.audio import NOISE, flac_that_claims, wav_of

CODEC = Audio().fit([np.random.default_rng(1).normal(0, 0.1, 8000).astype(np.float32)])


def complaint(function, *arguments, **options):
    with pytest.raises(SeqloomError) as caught:
        function(*arguments, **options)
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


def stored(tmp_path, content: bytes) -> str:
    path = tmp_path / "a.wav"
    path.write_bytes(content)
    return str(path)


def peak(function, *arguments) -> float:
    tracemalloc.start()
    try:
        function(*arguments)
    except SeqloomError:
        pass
    finally:
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return found / 2**20


def test_a_header_that_claims_billions_of_samples_is_not_believed(tmp_path):
    path = stored(tmp_path, flac_that_claims(2**36 - 1))
    assert peak(CODEC.encode, path) < 30
    assert "a complete WAV or FLAC file" in complaint(CODEC.encode, path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (wav_of(rate=1, body=NOISE), "1 samples per second; expected 1,000 to 384,000"),
        (wav_of(rate=400_000, body=NOISE), "400,000 samples per second"),
        (wav_of(channels=65, body=NOISE), "65 channels; expected 1 to 64"),
    ],
)
def test_rates_and_channels_that_cannot_be_meant_are_refused(tmp_path, content, words):
    assert words in complaint(CODEC.encode, stored(tmp_path, content))
    assert words in complaint(lambda: samples(io.BytesIO(content)))


def test_rates_of_python_have_the_same_bounds():
    assert "999 samples per second" in complaint(CODEC.encode, (np.zeros(9000, np.float32), 999))
    assert len(CODEC.encode((np.zeros(9000, np.float32), 1000)))


def test_a_chunk_of_four_gigabytes_before_the_samples_is_not_read():
    class Endless(io.BytesIO):
        def read(self, size=-1):
            assert size <= 2**24 + 1
            return super().read(size)

    for before in (b"JUNK" + struct.pack("<I", 0xFFFFFFF0), (b"JUNK" + struct.pack("<I", 2**20) + b"x" * 2**20) * 17):
        assert "too much before its samples" in complaint(samples, Endless(wav_of(before=before, body=NOISE)))
    content = b"RIFF\0\0\0\0WAVE" + b"\0" * 2**25
    assert "too much before its samples" in complaint(samples, Endless(content))


class TestSeconds:
    @pytest.fixture
    def short(self):
        codec = Audio(max_seconds=0.5)
        codec._mean, codec._deviation = CODEC._mean, CODEC._deviation
        return codec

    def test_a_recording_that_lasts_too_long_is_refused_or_cut(self, short, tmp_path):
        path, noise = str(tmp_path / "a.flac"), np.random.default_rng(2).uniform(-0.5, 0.5, 8000)
        soundfile.write(path, noise, 8000)
        message = complaint(short.encode, path)
        assert "a.flac lasts more than 0.5 seconds (max_seconds)" in message
        assert "--truncate" in message
        read, rate = short.cut(path, 10)
        assert (len(read), rate) == (4000, 8000)
        np.testing.assert_array_equal(short.encode((read, rate)), CODEC.encode((sound.from_file(path)[0][:4000], 8000)))
        assert "lasts more than" in complaint(short.encode, noise)
        assert len(short.cut(noise, 10)[0]) == 4000
        short.encode(noise[:4000])

    def test_no_more_is_decoded_than_tells_that_it_is_too_long(self, short, tmp_path, monkeypatch):
        path = str(tmp_path / "a.wav")
        soundfile.write(path, np.zeros(800_000), 8000)
        monkeypatch.setattr(sound, "BLOCK", 1000)
        assert peak(short.encode, path) < 4  # the file has 1.6 MB, its samples would have 3.2

    def test_a_stream_may_go_on(self, short):
        feed = short.feed()
        assert sum(len(feed.feed(np.zeros(8000, np.float32))) for _ in range(3)) > 80


def test_a_long_recording_gives_the_same_frames_in_blocks(monkeypatch):
    noise = np.random.default_rng(3).uniform(-0.5, 0.5, 30_000).astype(np.float32)
    whole = CODEC.encode(noise)
    monkeypatch.setattr("seqloom.data.codecs.audio.BLOCK", 777)
    np.testing.assert_array_equal(CODEC.encode(noise), whole)


def test_only_regular_files_of_a_sensible_size_are_read(tmp_path, monkeypatch):
    assert "not a regular file" in complaint(CODEC.encode, "/dev/zero")
    path = stored(tmp_path, wav_of(body=NOISE))
    monkeypatch.setattr(sound, "MOST_BYTES", 100)
    assert "bytes, more than 100" in complaint(CODEC.encode, path)


def test_samples_far_beyond_full_scale_are_refused():
    assert "a sample of 1e+30" in complaint(CODEC.encode, np.full(8000, 1e30, np.float32))
    assert np.isfinite(CODEC.encode(np.full(8000, 1e6, np.float32))).all()
