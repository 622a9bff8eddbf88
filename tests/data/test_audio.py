"""Audio: features as a plain reference computes them, streams that equal files, masks, mistakes in one line."""

import io
import json
import os
import sys
import tarfile
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seqloom.data import dataset
from seqloom.data.codecs import sound
from seqloom.data.codecs.audio import Audio
from seqloom.data.codecs.spec_augment import SpecAugment
from seqloom.data.codecs.text import Text
from seqloom.data.keys import codec_key
from seqloom.errors import SeqloomError
from seqloom.studies.sources import spoken_digits as sources
from seqloom.tasks.pairs import Pairs
from seqloom.types import Padded


def noise(samples: int, seed: int = 0) -> np.ndarray:
    """Louder and quieter by turns."""
    loudness = 0.2 + 0.1 * np.sin(np.arange(samples) / 700)
    return (np.random.default_rng(seed).normal(0, 1, samples) * loudness).clip(-1, 1).astype(np.float32)


def recorded(path: Path | str, samples: np.ndarray, rate: int = 8000, **options: str) -> str:
    soundfile.write(path, samples, rate, **({"subtype": "PCM_16"} | options))
    return str(path)


def sixteen_bit(samples: np.ndarray) -> np.ndarray:
    return (samples * 2**15).round().clip(-(2**15), 2**15 - 1).astype(np.int16)


def complaint(function, *arguments, **options):
    with pytest.raises(SeqloomError) as caught:
        function(*arguments, **options)
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


def log_mel(samples: np.ndarray, rate: int, mels: int, window: int, shift: int) -> np.ndarray:
    """Kaldi's recipe, one frame after the other: centre, pre-emphasis, Povey's window, power, triangles on the mel."""

    def mel(frequency):
        return 1127 * np.log(1 + frequency / 700)

    size = 1 << (window - 1).bit_length()
    shape = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(window) / (window - 1))) ** 0.85
    edges = np.linspace(mel(20), mel(rate / 2), mels + 2)
    places = mel(np.arange(size // 2) * rate / size)
    rows = []
    for begin in range(0, len(samples) - window + 1, shift):
        frame = samples[begin : begin + window].astype(np.float64)
        frame = frame - frame.mean()
        frame = (frame - 0.97 * np.append(frame[0], frame[:-1])) * shape
        power = np.abs(np.fft.rfft(frame, size))[:-1] ** 2
        energies = []
        for left, centre, right in zip(edges, edges[1:], edges[2:]):
            rising, falling = (places - left) / (centre - left), (right - places) / (right - centre)
            energies.append((power * np.minimum(rising, falling).clip(0)).sum())
        rows.append(np.log(np.maximum(energies, np.finfo(np.float32).eps)))
    return np.array(rows)


FITTED = Audio(stack=3).fit([noise(8000, seed) for seed in range(3)])


class TestFeatures:
    @pytest.mark.parametrize(("rate", "mels", "window", "shift"), [(8000, 40, 200, 80), (16000, 80, 400, 160)])
    def test_they_are_those_of_a_plain_reference(self, rate, mels, window, shift):
        sound = noise(rate // 2)
        codec = Audio(rate=rate, mels=mels, stack=1, normalise=False)
        expected = log_mel(sound, rate, mels, window, shift)
        assert codec.encode(sound).shape == expected.shape == (48, mels)
        assert codec.encode(sound).dtype == np.float32
        assert np.allclose(codec.encode(sound), expected, atol=2e-3)

    def test_frames_are_stacked_and_the_rest_is_dropped(self):
        sound = noise(8000)
        frames = Audio(stack=1, normalise=False).encode(sound)
        stacked = Audio(stack=4, normalise=False).encode(sound)
        assert (len(frames), stacked.shape) == (98, (24, 160))
        assert np.array_equal(stacked.reshape(-1, 40), frames[:96])

    def test_features_and_seconds_are_known_before_fitting(self):
        codec = Audio(mels=20, stack=2, shift_ms=12.5)
        assert (codec.features, codec.seconds, codec.vocabulary) == (40, 0.025, None)
        assert codec.pieces(np.zeros((3, 40))) == ["0.00 s", "0.03 s", "0.05 s"]

    def test_statistics_are_those_of_all_frames_whatever_recording_they_are_in(self):
        sounds = [noise(length, length) for length in (700, 8000, 3000)]
        frames = np.concatenate([Audio(stack=1, normalise=False).encode(sound) for sound in sounds])
        codec = Audio(stack=1).fit(iter(sounds))
        normalised = np.concatenate([codec.encode(sound) for sound in sounds])
        expected = (frames - frames.mean(0, dtype=np.float64)) / frames.std(0, dtype=np.float64)
        assert np.allclose(normalised, expected, atol=1e-4)

    def test_a_band_without_a_sound_stays_small(self):
        codec = Audio().fit([np.zeros(8000, dtype=np.float32)])
        assert np.abs(codec.encode(np.zeros(8000, dtype=np.float32))).max() == 0
        assert np.abs(codec.encode(noise(8000))).max() < 30


class TestValues:
    def test_every_form_of_a_sound_is_the_same(self, tmp_path):
        whole = sixteen_bit(noise(4000))
        floats = (whole / 2**15).astype(np.float32)
        expected = FITTED.encode(floats)
        flac, wav = recorded(tmp_path / "a.flac", whole), recorded(tmp_path / "a.wav", whole)
        forms = [whole, whole.astype(np.int32) * 2**16, floats.astype(np.float64), floats.tolist()]
        forms += [torch.tensor(floats), (whole, 8000), (floats, 8000.0), wav, Path(wav), flac]
        for form in forms:
            assert np.array_equal(FITTED.encode(form), expected), form

    def test_channels_are_averaged(self, tmp_path):
        left, right = noise(4000, 1), noise(4000, 2)
        both = np.stack([left, right], 1)
        expected = FITTED.encode((left + right) / 2)
        assert np.allclose(FITTED.encode(both), expected, atol=1e-4)
        assert np.allclose(FITTED.encode(recorded(tmp_path / "a.wav", both, subtype="FLOAT")), expected, atol=1e-4)

    def test_another_rate_is_resampled_and_reported_once(self, tmp_path, capsys, monkeypatch):
        monkeypatch.setattr(sound, "RESAMPLED", set())
        time = np.arange(32000) / 16000
        tone, same = (np.sin(2 * np.pi * 700 * each) * 0.3 for each in (time, time[::2]))
        high = recorded(tmp_path / "high.wav", tone, 16000)
        found = FITTED.encode(high), FITTED.encode((tone, 16000))
        report = "has 16,000 samples per second; like all of that rate it is resampled to 8,000."
        assert capsys.readouterr().err == f"{high} {report}\n"
        expected = FITTED.encode(same)
        for each in found:
            assert each.shape == expected.shape
            bands = np.abs(each - expected)[5:-5].reshape(-1, 40)[:, 12:16]  # around 700 Hz: all else is silent
            assert bands.max() < 0.05

    @pytest.mark.parametrize(
        ("value", "words"),
        [
            ("nowhere.wav", ["nowhere.wav", "no such file"]),
            (".", [". cannot be read", "path of a recording"]),
            ("text.wav", ["text.wav is not a readable sound", "Format not recognised", "WAV or FLAC"]),
            ("nothing.wav", ["nothing.wav is not a readable sound"]),
            ("empty.wav", ["empty.wav is empty"]),
            ("cut.flac", ["cut.flac is not a readable sound"]),
            ("cut.wav", ["cut.wav is cut off"]),
            ("short.wav", ["short.wav lasts 44.9 ms", "at least 45 ms"]),
            ("nan.wav", ["nan.wav has samples that are not finite"]),
            ("a\0b", ["null"]),
            (np.zeros(0), ["the sound is empty"]),
            ([], ["the sound is empty"]),
            (np.zeros(359), ["the sound lasts 44.9 ms"]),
            (np.zeros((2, 8000)), ["shape [2, 8000]", "[samples, channels]"]),
            (np.zeros((1, 1, 1)), ["shape [1, 1, 1]"]),
            (0.5, ["shape []"]),
            (None, ["shape []"]),
            (np.zeros(8000, dtype=np.uint8), ["uint8", "int16"]),
            ([1] * 8000, ["int64"]),
            ([[1.0], [1.0, 2.0]], ["ragged"]),
            ((np.zeros(8000), 0), ["is not (samples, rate)"]),
            ((np.zeros(8000), "8000"), ["is not (samples, rate)"]),
            ((np.zeros(8000), 8000, 1), ["is not (samples, rate)"]),
            (np.full(8000, np.inf), ["the sound has samples that are not finite"]),
        ],
        ids=str,
    )
    def test_what_is_not_a_sound_is_named(self, tmp_path, monkeypatch, value, words):
        monkeypatch.chdir(tmp_path)
        Path("text.wav").write_text("no sound\n" * 100)
        Path("nothing.wav").write_bytes(b"")
        recorded("empty.wav", noise(0))
        recorded("short.wav", noise(359))
        recorded("nan.wav", np.full(8000, np.nan), subtype="FLOAT")
        for name in ("cut.wav", "cut.flac"):
            content = Path(recorded(name, noise(8000))).read_bytes()
            Path(name).write_bytes(content[: len(content) // 2])
        for ask in (FITTED.encode, FITTED.content, lambda value: Audio().fit([value])):
            message = complaint(ask, value)
            assert [word for word in words if word not in message] == []
            assert len(message) < 250

    def test_a_recording_of_unknown_length_is_not_cut_off(self, tmp_path):
        path = recorded(tmp_path / "a.wav", noise(8000))
        content = Path(path).read_bytes()
        Path(path).write_bytes(content[:4] + b"\xff\xff\xff\x7f" + content[8:40] + b"\xff\xff\xff\x7f" + content[44:])
        assert FITTED.encode(path).shape == (32, 120)

    def test_the_shortest_sound_is_one_position(self):
        assert FITTED.encode(noise(360)).shape == (1, 120)

    def test_sound_cannot_be_a_target(self):
        assert "source, not a target" in complaint(FITTED.decode, np.zeros((1, 120)))
        with pytest.raises(ValueError, match="a source, not a target"):
            Pairs(source=Text(), target=Audio())

    @pytest.mark.parametrize(
        ("arguments", "word"),
        [
            ({"mels": 0}, "mels = 0"),
            ({"stack": 0}, "stack = 0"),
            ({"shift_ms": 0.01}, "shift_ms = 0.01"),
            ({"time_masks": -1}, "time_masks = -1"),
            ({"frequency_masks": 1, "frequency_width": 41}, "frequency_width = 41"),
            ({"time_masks": 1, "time_share": 1.5}, "time_share = 1.5"),
            ({"time_masks": 1, "normalise": False}, "normalise = false"),
        ],
    )
    def test_impossible_settings_are_refused(self, arguments, word):
        with pytest.raises(ValueError, match=word):
            Audio(**arguments)

    @pytest.mark.parametrize("name", ["soundfile", "soxr", "kaldi_native_fbank"])
    def test_without_the_extra_it_is_named(self, monkeypatch, name):
        monkeypatch.setitem(sys.modules, name, None)
        content = io.BytesIO()
        soundfile.write(content, noise(16000), 16000, format="WAV")
        samples = {"soundfile": lambda: sound.from_file("a.wav", content.getvalue())}
        ask = samples.get(name, lambda: FITTED.encode((noise(16000), 16000)))
        assert complaint(ask) == 'sound needs the extra "audio": pip install "seqloom[audio]"'


class TestLearned:
    def test_saving_and_loading_change_no_bit(self, tmp_path):
        FITTED.save(tmp_path, "source")
        assert [path.name for path in tmp_path.iterdir()] == ["source.audio.json"]
        again = Audio().load(tmp_path, "source")
        assert np.array_equal(again.encode(noise(8000)), FITTED.encode(noise(8000)))

    def test_damaged_statistics_are_refused(self, tmp_path):
        assert "source.audio.json cannot be read" in complaint(Audio().load, tmp_path, "source")
        short = {"mean": [0.0] * 39, "deviation": [1.0] * 39}
        zero, wild = ({"mean": [0.0] * 40, "deviation": [number] * 40} for number in (0.0, float("nan")))
        for content in ("[]", "{"):
            (tmp_path / "source.audio.json").write_text(content)
            assert "expected the statistics of audio" in complaint(Audio().load, tmp_path, "source")
        for content in (
            '{"mean": 3}',
            '{"mean": {}, "deviation": null}',
            json.dumps(short),
            json.dumps(zero),
            json.dumps(wild),
        ):
            (tmp_path / "source.audio.json").write_text(content)
            assert "no statistics for this codec" in complaint(Audio().load, tmp_path, "source")

    def test_what_is_not_fitted_says_so(self):
        assert "fit it or load it" in complaint(Audio().encode, noise(8000))
        assert "nothing to learn from" in complaint(Audio().fit, [])


cuts = st.lists(st.integers(0, 1500), max_size=12)


class TestStreams:
    @pytest.mark.parametrize("rate", [8000, 16000, 11025])
    @settings(max_examples=40, deadline=None)
    @given(cuts=cuts, length=st.integers(2500, 6000))
    def test_in_whatever_chunks_a_sound_comes_it_is_that_of_the_whole(self, rate, cuts, length):
        sound = noise(length)
        expected = FITTED.encode((sound, rate))
        feed, found, begin = FITTED.feed(), [], 0
        for cut in [*cuts, length]:
            found.append(feed.feed((sound[begin : begin + cut], rate)))
            begin += cut
        found.append(feed.close())
        assert np.array_equal(np.concatenate(found), expected)
        if rate == 8000:
            assert len(found[-1]) == 0  # nothing is held back

    def test_positions_come_as_soon_as_their_last_sample_does(self):
        feed, sound = FITTED.feed(), noise(840)
        counts = [len(feed.feed(sound[place : place + 1])) for place in range(840)]
        assert [place for place, count in enumerate(counts) if count] == [359, 599, 839]
        assert set(counts) == {0, 1}

    def test_sixteen_bit_stereo_in_single_samples(self):
        sound = sixteen_bit(np.stack([noise(1000, 1), noise(1000, 2)], 1))
        feed = FITTED.feed()
        found = [feed.feed(sound[place : place + 1]) for place in range(1000)]
        assert np.array_equal(np.concatenate([*found, feed.close()]), FITTED.encode(sound))

    def test_a_stream_of_nothing_gives_nothing(self):
        feed = FITTED.feed()
        assert feed.feed(np.zeros(0)).shape == feed.close().shape == (0, 120)

    def test_a_stream_that_changes_its_rate_is_refused(self):
        feed = FITTED.feed()
        feed.feed(noise(100))
        assert "8,000 samples per second and continues with 16,000" in complaint(feed.feed, (noise(100), 16000))


def spec_augment(**changes):
    options = {"bands": 5, "frequency_masks": 1, "frequency_width": 2, "time_masks": 1, "time_width": 3}
    return SpecAugment(**{**options, "time_share": 0.5, **changes})


class TestSpecAugment:
    @settings(max_examples=100, deadline=None)
    @given(seed=st.integers(0, 10**6), lengths=st.lists(st.integers(1, 9), min_size=1, max_size=4))
    def test_what_is_hidden_is_whole_bands_and_whole_stretches_and_the_rest_is_as_it_was(self, seed, lengths):
        rows = [np.random.default_rng(length).uniform(1, 2, (length, 15)).astype(np.float32) for length in lengths]
        source = Padded.stack(rows).to("cpu")
        found = spec_augment()(source, np.random.default_rng(seed))
        assert isinstance(found.values, torch.Tensor)
        assert found.values.dtype == torch.float32
        assert torch.equal(found.lengths, source.lengths)
        for row, length in enumerate(lengths):
            before, after = source.values[row].numpy(), found.values[row].numpy()
            hidden = (after != before)[:length]
            assert (after[:length][hidden] == 0).all()
            assert (after[length:] == 0).all()
            silent = np.flatnonzero(hidden.all(1))
            assert len(silent) <= min(3, length // 2)
            assert np.array_equal(silent, np.arange(len(silent)) + silent[:1].sum())  # one stretch
            bands = hidden[~hidden.all(1)].reshape(-1, 3, 5)
            assert (bands == bands[:1, :1]).all()  # the same in each frame of each position
            assert len(bands) > 0
            assert bands[0, 0].sum() <= 2

    def test_each_width_and_each_place_comes_up(self):
        source = Padded.stack([np.ones((6, 5), dtype=np.float32)] * 400)
        found = spec_augment(frequency_masks=0)(source, np.random.default_rng(0)).values
        masks = {tuple(np.flatnonzero(row.sum(1) == 0).tolist()) for row in found}
        assert masks == {tuple(range(begin, begin + width)) for width in range(4) for begin in range(7 - width)}
        assert isinstance(found, np.ndarray)

    def test_the_same_chance_gives_the_same_masks_and_examples_differ(self):
        source = Padded.stack([np.ones((20, 10), dtype=np.float32)] * 8)
        one, same, other = (spec_augment()(source, np.random.default_rng(seed)).values for seed in (1, 1, 2))
        assert np.array_equal(one, same)
        assert not np.array_equal(one, other)
        assert len({row.tobytes() for row in one}) > 1

    def test_a_task_varies_its_sources_only_if_its_codec_does(self):
        quiet = Pairs(source=Audio(), target=Text(units="byte"))
        wild = Pairs(source=Audio(time_masks=2, time_share=1.0, time_width=30), target=Text(units="byte"))
        batch = wild.batch([np.ones((50, 120), dtype=np.float32)] * 4, [np.array([7])] * 4)
        assert (quiet.augments, wild.augments) == (False, True)
        assert quiet.augment(batch, np.random.default_rng(0)) is batch
        varied = wild.augment(batch, np.random.default_rng(0))
        assert not torch.equal(varied.source.values, batch.source.values)
        assert varied.targets is batch.targets


def folder_of_sounds(folder: Path, count: int = 12) -> Path:
    (folder / "clips").mkdir(parents=True)
    for number in range(count):
        recorded(folder / "clips" / f"{number}.wav", noise(1000 + 80 * number, number))
    return rewritten(folder, [f"clips/{number}.wav\tnumber {number}" for number in range(count)])


def rewritten(folder: Path, lines: list[str]) -> Path:
    table = folder / "sounds.tsv"
    table.write_text("".join(f"{line}\n" for line in lines))
    rested(folder)
    return table


def rested(folder: Path, seconds: float = 60) -> None:
    """As if all was written a while ago."""
    for path in folder.rglob("*.*"):
        now = path.stat().st_mtime
        os.utime(path, (now - seconds, now - seconds))


def prepared(data, cache: Path, valid=None, **options):
    codec = Audio()
    found = dataset.prepare(data, valid, source=codec, target=Text(units="word"), seed=1, cache=cache, **options)
    return found, codec


def refuse(self, *arguments):
    raise AssertionError("read again")


class TestData:
    def test_paths_are_relative_to_the_folder_of_their_table(self, tmp_path, monkeypatch):
        table = folder_of_sounds(tmp_path / "data")
        monkeypatch.chdir(tmp_path)
        found, codec = prepared("data/sounds.tsv", tmp_path / "cache")
        assert len(found.train) + len(found.valid) == 12
        example = found.valid_examples[0]
        assert example.source == str(tmp_path / "data/clips" / Path(example.source).name)
        assert np.array_equal(found.valid[0][0], codec.encode(example.source))
        monkeypatch.chdir(table.parent)
        assert prepared("sounds.tsv", tmp_path / "cache")[0].valid_examples == found.valid_examples

    def test_paths_that_do_not_exist_there_are_relative_to_the_current_folder(self, tmp_path, monkeypatch):
        table = folder_of_sounds(tmp_path / "data")
        (tmp_path / "lists").mkdir()
        table = table.rename(tmp_path / "lists" / "sounds.tsv")
        monkeypatch.chdir(tmp_path / "data")
        assert len(prepared(table, tmp_path / "cache")[0].train) == 11
        monkeypatch.chdir(tmp_path)
        assert str(tmp_path / "lists/clips/0.wav") in complaint(prepared, table, tmp_path / "cache")
        monkeypatch.chdir(tmp_path / "data")
        pairs = [(f"clips/{number}.wav", f"number {number}") for number in range(12)]
        assert len(prepared(pairs, tmp_path / "cache")[0].train) == 11

    def test_the_same_recordings_are_held_out_wherever_they_lie(self, tmp_path):
        held = []
        for name in ("here", "there"):
            folder_of_sounds(tmp_path / name)
            found, _ = prepared(tmp_path / name / "sounds.tsv", tmp_path / "cache")
            held.append([example.target for example in found.valid_examples])
        assert held[0] == held[1]

    def test_a_recording_under_another_name_is_a_leak(self, tmp_path):
        table = folder_of_sounds(tmp_path / "data")
        (tmp_path / "other.wav").write_bytes((tmp_path / "data/clips/3.wav").read_bytes())
        valid = [(str(tmp_path / "other.wav"), "number 3")]
        assert prepared(table, tmp_path / "cache", valid)[0].report.leaks == 1

    def test_the_cache_is_used_until_a_recording_changes(self, tmp_path, monkeypatch):
        table = folder_of_sounds(tmp_path / "data")
        first, _ = prepared(table, tmp_path / "cache")
        with monkeypatch.context() as patch:
            patch.setattr(Audio, "fit", refuse)
            patch.setattr(Audio, "encode", refuse)
            again, codec = prepared(table, tmp_path / "cache")
        assert again.train.folder == first.train.folder
        assert np.array_equal(codec.encode(again.valid_examples[0].source), again.valid[0][0])
        changed = tmp_path / "data/clips/5.wav"
        recorded(changed, noise(1400, 99))
        os.utime(changed, (1e9, 1e9))
        third, codec = prepared(table, tmp_path / "cache")
        assert third.train.folder != first.train.folder
        encoded = [
            row[0] for corpus in (third.train, third.valid) for row in map(corpus.__getitem__, range(len(corpus)))
        ]
        assert sum(np.array_equal(each, codec.encode(str(changed))) for each in encoded) == 1

    def test_bad_recordings_are_counted_and_passed_over_or_named_with_their_line(self, tmp_path):
        table = folder_of_sounds(tmp_path / "data")
        lines = table.read_text().splitlines()
        (tmp_path / "data/clips/text.wav").write_text("no sound")
        recorded(tmp_path / "data/clips/short.wav", noise(100))
        bad = [f"clips/{name}.wav\tbad" for name in ("text", "gone", "short")]
        rewritten(tmp_path / "data", [*lines[:4], bad[0], "no tab", *lines[4:], bad[1], bad[2]])
        message = complaint(prepared, table, tmp_path / "cache")
        assert "no tab" in message
        rewritten(tmp_path / "data", [*lines[:4], bad[0], *lines[4:], bad[1], bad[2]])
        message = complaint(prepared, table, tmp_path / "cache")
        assert message.startswith(f"{table}, line 5: {tmp_path / 'data/clips/text.wav'} is not a readable sound")
        assert message.endswith("skip bad lines with --skip-bad")
        found, _ = prepared(table, tmp_path / "cache", valid=table, skip_bad=True)
        assert (len(found.train), len(found.valid), len(found.valid_examples)) == (12, 12, 12)
        assert "Skipped 3 training lines: 3 x unreadable source (first at line 5)." in found.report.lines()
        assert "Skipped 3 validation lines: 3 x unreadable source (first at line 5)." in found.report.lines()
        rewritten(tmp_path / "data", bad)
        message = complaint(prepared, table, tmp_path / "cache", skip_bad=True)
        assert "no usable line: all 3 were skipped (3 x unreadable source)" in message

    def test_a_missing_extra_is_not_a_bad_line(self, tmp_path, monkeypatch):
        table = folder_of_sounds(tmp_path / "data")
        monkeypatch.setitem(sys.modules, "soundfile", None)
        assert "seqloom[audio]" in complaint(prepared, table, tmp_path / "cache", skip_bad=True)

    def test_other_masks_need_no_other_corpus(self, tmp_path):
        plain, masked = (Audio(time_masks=masks).fit([noise(8000)]) for masks in (0, 2))
        assert codec_key(plain) == codec_key(masked)
        assert codec_key(plain) != codec_key(Audio(stack=2).fit([noise(8000)]))


class TestSpokenDigits:
    """Each take of this archive is a level of its own, so that a string tells what it was made of."""

    NUMBERS = range(10)

    @pytest.fixture(autouse=True)
    def archive(self, tmp_path, monkeypatch):
        home = tmp_path / "data/fsdd"
        home.mkdir(parents=True)
        with tarfile.open(home / "recordings.tar.xz", "w:xz") as packed:
            for place, (speaker, digit, number) in enumerate(product("ab", range(10), self.NUMBERS)):
                content = io.BytesIO()
                soundfile.write(content, np.full(100, 1000 + 50 * place, dtype=np.int16), 8000, format="WAV")
                member = tarfile.TarInfo(f"recordings/{digit}_{speaker}_{number}.wav")
                member.size = content.tell()
                packed.addfile(member, io.BytesIO(content.getvalue()))
        monkeypatch.setenv("SEQLOOM_DATA", str(tmp_path / "data"))
        sets = {"train": (30, range(8, 10)), "valid": (20, range(5, 8)), "test": (20, range(5))}
        monkeypatch.setattr(sources, "DIGIT_STRINGS", sets)

    def takes_of(self, table: Path) -> list[tuple[list[tuple[str, int, int]], list[str], np.ndarray]]:
        found = []
        known = list(product("ab", range(10), self.NUMBERS))
        for line in table.read_text().splitlines():
            path, words = line.split("\t")
            samples, rate = soundfile.read(table.parent / path, dtype="int16")
            assert rate == 8000
            edges = np.flatnonzero(np.diff(np.concatenate([[0], samples > 900, [0]])))
            levels = [int(samples[begin]) for begin in edges[::2]]
            assert (edges[1::2] - edges[::2]).sum() % 100 == 0
            found.append(([known[(level - 1000) // 50] for level in levels], words.split(), samples))
        return found

    def test_a_string_is_what_its_words_say_by_one_speaker_of_takes_of_its_set_alone(self, tmp_path):
        data = sources.spoken_digits(tmp_path / "made")
        for paths, numbers, count in (
            (data.train, range(8, 10), 30), (data.valid, range(5, 8), 20), (data.test, range(5), 20)
        ):  # fmt: skip
            strings = self.takes_of(Path(paths[0]))
            assert len(strings) == count
            for takes, words, samples in strings:
                assert 3 <= len(words) <= 5
                assert len({speaker for speaker, _, _ in takes}) == 1
                assert {number for _, _, number in takes} <= set(numbers)
                silence = samples[samples < 900]
                assert len(silence) <= 800 * (len(words) + 1)
                assert np.abs(silence).max(initial=0) < 40
                if len(takes) == len(words):  # no two takes touch
                    assert [sources.DIGITS[digit] for _, digit, _ in takes] == words
            assert sum(len(takes) == len(words) for takes, words, _ in strings) > count / 2
            assert {len(words) for _, words, _ in strings} == {3, 4, 5}

    def test_it_is_the_same_each_time_and_made_once(self, tmp_path, monkeypatch):
        first, second = (sources.spoken_digits(tmp_path / name) for name in ("one", "two"))
        one, two = (sorted((tmp_path / name).rglob("*.*")) for name in ("one", "two"))
        assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]
        assert len(one) == 73
        Path(first.test[0]).unlink()  # as if it was interrupted
        again = sources.spoken_digits(tmp_path / "one")
        assert Path(again.test[0]).read_bytes() == Path(second.test[0]).read_bytes()
        monkeypatch.delenv("SEQLOOM_DATA")
        assert sources.spoken_digits(tmp_path / "one") == first
