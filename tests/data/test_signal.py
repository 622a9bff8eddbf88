"""Signals: frames of samples, statistics of all recordings, WAV files, mistakes in one line."""

import io
import wave

import numpy as np
import pytest

from seqloom.data.codecs.moments import mean_and_deviation
from seqloom.data.codecs.signal import Signal
from seqloom.errors import SeqloomError, UnreadableError

soundfile = pytest.importorskip("soundfile")
TONE = (np.sin(np.arange(1010) / 7) / 3).astype(np.float32)


@pytest.fixture
def codec():
    return Signal(frame=20).fit([TONE])


def test_frames_are_neighbouring_samples_with_mean_0_and_deviation_1(codec):
    frames = codec.encode(TONE)
    assert frames.shape == (50, 20)  # the last 10 samples are no frame
    assert frames.dtype == np.float32
    expected = (TONE - TONE.astype(np.float64).mean()) / TONE.astype(np.float64).std()
    np.testing.assert_allclose(frames.reshape(-1), expected[:1000], atol=1e-5)
    np.testing.assert_allclose(codec.decode(frames), TONE[:1000], atol=1e-6)


def test_the_statistics_are_those_of_all_samples_together():
    parts = [np.random.default_rng(seed).normal(seed, 1 + seed, (10 * seed + 1, 3)) for seed in range(5)]
    mean, deviation = mean_and_deviation(iter(parts))
    np.testing.assert_allclose(mean, np.concatenate(parts).mean(0), rtol=1e-12)
    np.testing.assert_allclose(deviation, np.concatenate(parts).std(0), rtol=1e-12)
    assert mean_and_deviation([]) is None


def test_a_file_is_read_like_its_samples_and_written_so_that_it_can_be_read(codec, tmp_path):
    path = tmp_path / "tone.wav"
    path.write_bytes(codec.to_file(TONE))
    with wave.open(io.BytesIO(path.read_bytes())) as file:
        assert (file.getnchannels(), file.getframerate(), file.getnframes()) == (1, 8000, 1010)
    np.testing.assert_allclose(codec.encode(str(path)), codec.encode(TONE), atol=2e-4)
    assert codec.content(str(path)) == codec.content(path)


def test_samples_that_are_too_loud_are_cut_and_do_not_wrap(codec):
    with wave.open(io.BytesIO(codec.to_file(3 * TONE.astype(np.float64)))) as file:
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2")
    assert samples.max() == 32767
    assert np.all(samples[TONE > 0] >= 0)


def test_a_recording_of_another_rate_is_resampled(codec, tmp_path):
    pytest.importorskip("soxr")
    path = tmp_path / "fast.wav"
    soundfile.write(path, np.sin(np.arange(3200) / 14) / 3, 16000)
    assert codec.encode(str(path)).shape == (80, 20)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (TONE[:19], "19 samples; expected at least a frame of 20"),
        (np.zeros(0, np.float32), "is empty"),
        (np.full(100, np.nan), "not finite"),
        ("nowhere.wav", "there is no such file"),
    ],
)
def test_what_is_no_recording_is_one_line(codec, value, problem):
    with pytest.raises(UnreadableError, match=problem):
        codec.encode(value)


def test_silence_has_nothing_to_learn_from():
    with pytest.raises(SeqloomError, match="silent"):
        Signal().fit([np.zeros(100, np.float32)])
    with pytest.raises(SeqloomError, match="nothing to learn from"):
        Signal().fit([])


@pytest.mark.parametrize("content", ['{"mean": 0}', '{"mean": "0", "deviation": 1}', '{"mean": 0, "deviation": 0}'])
def test_damaged_statistics_are_one_line(tmp_path, content):
    (tmp_path / "target.signal.json").write_text(content)
    with pytest.raises(SeqloomError, match="has no statistics of a signal"):
        Signal().load(tmp_path, "target")
