"""Films: every kind of file becomes the frames and the sound that were meant; broken ones are refused in one line."""

import io
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
import soundfile

from seqloom.data.codecs.audio import Audio
from seqloom.data.codecs.missing_inputs import MissingInputs
from seqloom.data.codecs.text import Text
from seqloom.data.codecs.video import Video
from seqloom.data.corpus import Corpus
from seqloom.data.generators.mouths import FPS, RATE, SENTENCE, mouths, pronounce, render
from seqloom.data.keys import codec_key, codec_settings
from seqloom.errors import SeqloomError
from seqloom.tasks.pairs import Pairs
from seqloom.types import Composite, Example, Padded

RANDOM = np.random.default_rng(1)
SMOOTH = np.clip(np.indices((12, 16)).sum(0) * 5 + np.arange(6)[:, None, None] * 12, 0, 255).astype(np.uint8)
SOUND = (RANDOM.normal(0, 0.1, 4000) * 2**15).clip(-(2**15), 2**15 - 1).astype(np.int16)  # 0.5 seconds
CODEC = Video(size=12, width=16)
HEARD = Video(size=12, width=16, fps=12, sound=Audio(rate=8000, mels=20)).fit([{"sound": SOUND}])


def complaint(function, *arguments, **options):
    with pytest.raises(SeqloomError) as caught:
        function(*arguments, **options)
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


def npz(path: Path, **arrays) -> str:
    np.savez_compressed(path, **arrays)
    return str(path)


def gif(path: Path, frames: np.ndarray, milliseconds: int = 40) -> str:
    first, *others = map(PIL.Image.fromarray, frames)
    first.save(path, save_all=True, append_images=others, duration=milliseconds)
    return str(path)


def container(path: Path, frames: np.ndarray | None, sound: np.ndarray | None = None, fps: int = 25) -> str:
    """A film without losses, where its format allows."""
    av = pytest.importorskip("av")
    with av.open(str(path), "w") as file:
        video = audio = None
        if frames is not None:
            video = file.add_stream("ffv1" if path.suffix == ".mkv" else "mpeg4", rate=fps)
            video.width, video.height = frames.shape[2], frames.shape[1]
            video.pix_fmt = "gray" if path.suffix == ".mkv" else "yuv420p"
        if sound is not None:
            audio = file.add_stream("pcm_s16le" if path.suffix == ".mkv" else "aac", rate=8000, layout="mono")
        for frame in frames if frames is not None else ():
            file.mux(video.encode(av.VideoFrame.from_ndarray(frame, format="gray")))
        if sound is not None:
            block = av.AudioFrame.from_ndarray(sound[None], format="s16", layout="mono")
            block.sample_rate = 8000
            file.mux(audio.encode(block))
        for stream in filter(None, (video, audio)):
            file.mux(stream.encode(None))
    return str(path)


# -- what is read


def test_an_npz_file_an_array_and_a_dictionary_are_the_same_film(tmp_path):
    torch = pytest.importorskip("torch")
    for value in (
        SMOOTH,
        SMOOTH[..., None],
        SMOOTH.tolist(),
        list(SMOOTH),
        torch.from_numpy(SMOOTH),
        {"frames": SMOOTH},
        {"frames": SMOOTH, "fps": 25},
        npz(tmp_path / "a.npz", frames=SMOOTH, fps=25.0),
        npz(tmp_path / "b.npz", frames=SMOOTH.astype(np.int64), other=np.ones(3)),
    ):
        found = CODEC.encode(value)
        assert found.dtype == np.uint8
        assert np.array_equal(found, SMOOTH[..., None])


def test_a_film_without_losses_is_its_frames_and_its_sound(tmp_path):
    path = container(tmp_path / "a.mkv", SMOOTH, SOUND[:1920])
    assert np.array_equal(CODEC.encode(path), SMOOTH[..., None])
    heard = Video(size=12, width=16, sound=Audio(rate=8000, mels=20, normalise=False))
    found = heard.read(path)
    samples = SOUND[:1920].astype(np.float32) / 2**15
    assert np.array_equal(found.values, SMOOTH[..., None])
    assert np.allclose(found.parts["sound"], heard.sound.encode(samples), atol=1e-5)


def test_a_film_with_losses_is_nearly_its_frames(tmp_path):
    for path in (container(tmp_path / "a.mp4", SMOOTH), gif(tmp_path / "a.gif", SMOOTH)):
        found = CODEC.encode(path)
        assert found.shape == (6, 12, 16, 1)
        assert np.abs(found[..., 0].astype(int) - SMOOTH).mean() < 6


def test_frames_come_at_the_rate_of_the_codec(tmp_path):
    slow = {"frames": SMOOTH, "fps": 12.5}
    assert np.array_equal(CODEC.encode(slow)[:, 0, 0, 0], SMOOTH.repeat(2, 0)[:, 0, 0])
    fast = {"frames": SMOOTH, "fps": 75.0}
    assert np.array_equal(CODEC.encode(fast)[:, 0, 0, 0], SMOOTH[[1, 4], 0, 0])
    once = {"frames": SMOOTH[:1], "fps": 100.0}
    assert len(CODEC.encode(once)) == 1
    shown_for_80 = gif(tmp_path / "a.gif", SMOOTH, milliseconds=80)
    assert len(CODEC.encode(shown_for_80)) == 12


def test_frames_are_made_as_large_as_the_codec_has_them():
    found = Video(size=6, fit="stretch").encode(SMOOTH)
    assert found.shape == (6, 6, 6, 1)
    expected = np.asarray(PIL.Image.fromarray(SMOOTH[2]).resize((6, 6), PIL.Image.Resampling.BILINEAR))
    assert np.abs(found[2, ..., 0].astype(int) - expected).max() <= 3
    colour = np.stack([SMOOTH, 255 - SMOOTH, SMOOTH], axis=-1)
    assert np.array_equal(Video(size=12, width=16, grey=False).encode(colour), colour)
    assert np.array_equal(Video(size=12, width=16, grey=False).encode(SMOOTH), SMOOTH[..., None].repeat(3, -1))
    assert Video(size=12, width=16).encode(colour).shape == (6, 12, 16, 1)


def test_either_input_may_be_missing(tmp_path):
    soundfile.write(tmp_path / "a.wav", SOUND, 8000)
    both = HEARD.read({"frames": SMOOTH, "fps": 12, "sound": SOUND, "rate": 8000})
    heard = HEARD.read(str(tmp_path / "a.wav"))
    seen = HEARD.read(npz(tmp_path / "a.npz", frames=SMOOTH, fps=12))
    assert len(both) == max(len(both.values), len(both.parts["sound"])) > 6
    assert np.array_equal(both.values, seen.values)
    assert np.array_equal(both.parts["sound"], heard.parts["sound"])
    assert heard.values.shape == (0, 12, 16, 1)
    assert seen.parts["sound"].shape == (0, HEARD.sound.features)


def test_a_sound_in_a_dictionary_has_the_rate_that_is_given_or_that_of_the_codec():
    rate = {"frames": SMOOTH, "fps": 12, "sound": SOUND, "rate": 8000}
    pair = {"frames": SMOOTH, "fps": 12, "sound": (SOUND, 8000)}
    none = {"frames": SMOOTH, "fps": 12, "sound": SOUND}
    first, *others = (HEARD.read(each).parts["sound"] for each in (rate, pair, none))
    assert all(np.array_equal(first, each) for each in others)
    double = HEARD.read({"sound": np.repeat(SOUND, 2), "rate": 16000}).parts["sound"]
    assert double.shape == first.shape


def test_a_codec_without_sound_leaves_it_alone(tmp_path):
    assert np.array_equal(CODEC.read({"frames": SMOOTH, "sound": SOUND[:1]}), SMOOTH[..., None])


def test_what_is_cut_lasts_as_long_as_it_may():
    codec = Video(size=12, width=16, fps=12, max_seconds=0.25, sound=Audio(rate=8000, mels=20))
    codec.fit([{"sound": SOUND[:2000]}])
    value = {"frames": SMOOTH, "fps": 12, "sound": SOUND, "rate": 8000}
    assert "--truncate" in complaint(codec.read, value)
    found = codec.read(codec.cut(value, 10))
    assert np.array_equal(found.values, SMOOTH[:3, ..., None])
    assert np.array_equal(found.parts["sound"], codec.read({"sound": SOUND[:2000], "rate": 8000}).parts["sound"])


def test_the_content_is_what_is_read_not_where_it_is(tmp_path):
    paths = [npz(tmp_path / name, frames=SMOOTH, fps=25) for name in ("a.npz", "b.npz")]
    assert CODEC.content(paths[0]) == CODEC.content(paths[1]) == CODEC.content(SMOOTH)
    assert CODEC.content(SMOOTH[::-1]) != CODEC.content(SMOOTH)
    assert HEARD.content({"frames": SMOOTH, "fps": 12, "sound": SOUND}) != HEARD.content(
        {"frames": SMOOTH, "fps": 12, "sound": SOUND[::-1]}
    )


def test_streamed_frames_are_those_of_the_whole_and_sound_does_not_stream():
    feed = CODEC.feed()
    pieces = [feed.feed(SMOOTH[:2]), feed.feed(SMOOTH[:0]), feed.feed(SMOOTH[2:]), feed.close()]
    assert np.array_equal(np.concatenate(pieces), CODEC.encode(SMOOTH))
    assert "cannot be streamed" in complaint(HEARD.feed)


# -- what is refused


def bomb(path: Path) -> str:
    """An NPZ file of a megabyte that unpacks to a gigabyte."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": (2**16, 128, 129)})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("frames.npy", "w") as file:
        file.write(header.getvalue())
        for _ in range(1032):
            file.write(bytes(2**20))
    return str(path)


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path):
    path = bomb(tmp_path / "bomb.npz")
    tracemalloc.start()
    said = complaint(CODEC.encode, path)
    assert tracemalloc.get_traced_memory()[1] < 20e6
    tracemalloc.stop()
    assert "unpacks to more than" in said


class Trap:
    """Unpickling it writes a file."""

    def __reduce__(self):
        return (open, ("trap", "w"))


def test_objects_in_an_npz_file_are_not_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = npz(tmp_path / "a.npz", frames=np.array([Trap()], dtype=object))
    assert "is not a readable NPZ file" in complaint(CODEC.encode, path)
    assert not Path("trap").exists()


def encoded_or_refused(path: str) -> object:
    """The shape of a frame, or how many lines say why there is none."""
    try:
        return CODEC.encode(path).shape[1:]
    except SeqloomError as error:
        return len(str(error).splitlines())


@pytest.mark.parametrize("suffix", ["npz", "gif", "mp4", "mkv"])
def test_a_truncated_or_damaged_file_is_a_film_or_one_line(tmp_path, suffix):
    path, cut = tmp_path / f"a.{suffix}", str(tmp_path / f"cut.{suffix}")
    {"npz": lambda: npz(path, frames=SMOOTH), "gif": lambda: gif(path, SMOOTH)}.get(
        suffix, lambda: container(path, SMOOTH)
    )()
    whole = path.read_bytes()
    for size in (30, 3, 0):
        Path(cut).write_bytes(whole[:size])
        assert complaint(CODEC.encode, cut).startswith(cut)
    for seed in range(30):
        damaged = np.frombuffer(whole, dtype=np.uint8).copy()
        damaged[np.random.default_rng(seed).integers(0, len(damaged), 8)] ^= 0xFF
        Path(cut).write_bytes(damaged.tobytes())
        assert encoded_or_refused(cut) in ((12, 16, 1), 1)


def test_files_that_are_no_films_are_refused(tmp_path):
    (tmp_path / "a.mp4").write_text("hello")
    (tmp_path / "b.mp4").write_text("#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n")  # a list of other files
    for name in ("a.mp4", "b.mp4"):
        assert "is not a readable film" in complaint(CODEC.encode, str(tmp_path / name))
    assert "there is no such file" in complaint(CODEC.encode, "nowhere.npz")
    assert "not a regular file" in complaint(CODEC.encode, str(tmp_path))
    assert "neither frames nor sound" in complaint(CODEC.encode, npz(tmp_path / "c.npz", pictures=SMOOTH))
    assert "has no frames" in complaint(CODEC.encode, container(tmp_path / "d.mkv", None, SOUND))


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        ([SMOOTH[0], SMOOTH[1, :5]], "frames of changing size ([12, 16] and [5, 16])"),
        (SMOOTH[:0], "has no frames"),
        (SMOOTH / 255, "hold float64 values"),
        (SMOOTH.astype(int) * 2, "hold 0 to 3"),
        (SMOOTH[0], "frames of the shape [12, 16]"),
        (np.zeros((3, 4, 4, 2), dtype=np.uint8), "[3, 4, 4, 2]"),
        (np.zeros((3, 0, 4), dtype=np.uint8), "[3, 0, 4]"),
        (7, "shape []"),
        ({"frames": SMOOTH, "fps": 0}, "fps is 0; expected a number above 0"),
        ({"frames": SMOOTH, "fps": "fast"}, "fps is 'fast'"),
        ({"frames": SMOOTH, "fps": [1, 2]}, "fps is [1, 2]"),
        ({"pictures": SMOOTH}, "has 'pictures'; expected some of frames, fps, sound, rate"),
        ({}, "has no frames"),
        ({"sound": SOUND}, "has no frames"),
    ],
)
def test_values_that_are_no_films_are_refused(value, wrong):
    assert wrong in complaint(CODEC.encode, value)


def test_a_sound_shorter_than_its_film_is_refused():
    said = complaint(HEARD.read, {"frames": np.repeat(SMOOTH, 2, 0), "fps": 12, "sound": SOUND, "rate": 8000})
    assert "its sound lasts 0.50 s and its frames 1.00 s; expected a sound as long as its film, or none" in said
    assert "holds" in complaint(HEARD.read, {"frames": SMOOTH, "fps": 12, "sound": SOUND.astype(np.uint8)})


def test_frames_that_are_too_many_or_too_large_are_refused(tmp_path):
    short = Video(size=12, width=16, max_seconds=0.2)
    assert "lasts more than 0.2 seconds (task.source.max_seconds)" in complaint(short.encode, SMOOTH)
    small = Video(size=12, width=16, max_pixels=12 * 16 - 1)
    for value in (SMOOTH, gif(tmp_path / "a.gif", SMOOTH), container(tmp_path / "a.mkv", SMOOTH)):
        assert "frames of more than 191 pixels (max_pixels)" in complaint(small.encode, value)
    briefest = Video(size=12, width=16, max_seconds=0.01)  # one frame of a film that claims any rate
    for value in (gif(tmp_path / "b.gif", SMOOTH), container(tmp_path / "b.mkv", SMOOTH)):
        assert "max_seconds" in complaint(briefest.encode, value)


@pytest.mark.parametrize(
    "settings",
    [{"size": 0}, {"width": 9999}, {"fps": 0.0}, {"max_seconds": 0.0}, {"max_pixels": 0}, {"missing": 0.5}],
)
def test_settings_out_of_bounds_are_refused(settings):
    with pytest.raises(ValueError, match=f"{next(iter(settings))} = "):
        Video(**settings)


def test_a_film_is_no_target():
    with pytest.raises(ValueError, match="video can be a source, not a target"):
        Pairs(source=Text(), target=Video())


# -- stored


def films(count: int) -> list[Composite]:
    """What a codec reads: some without frames, some without sound."""
    return [
        Composite(
            RANDOM.integers(0, 256, (number % 4, 3, 2, 1), dtype=np.uint8),
            {"sound": RANDOM.normal(size=(number % 3 + (number % 4 == 0), 5)).astype(np.float32)},
        )
        for number in range(count)
    ]


class Reads(Video):
    """A codec whose values are encoded already."""

    names_files = False

    def read(self, value):
        return value


def test_a_corpus_gives_back_all_inputs(tmp_path):
    wanted, words = films(50), Text(units="byte")
    rows = [Example(film, "text" * (number % 3 + 1), number) for number, film in enumerate(wanted)]
    corpus = Corpus.write(tmp_path / "corpus", rows, Reads(sound=Audio()), words)
    again = Corpus.open(tmp_path / "corpus")
    for number, film in enumerate(wanted):
        for source, target in (corpus[number], again[number]):
            assert source.values.dtype == np.uint8
            assert np.array_equal(source.values, film.values)
            assert np.array_equal(source.parts["sound"], film.parts["sound"])
            assert words.decode(target) == rows[number].target
            assert corpus.lengths[number].tolist() == [len(film), len(target)]


def test_a_film_that_comes_twice_is_stored_once(tmp_path):
    paths = [npz(tmp_path / name, frames=SMOOTH, fps=12, sound=SOUND, rate=8000) for name in ("a.npz", "b.npz")]
    other = {"frames": SMOOTH, "fps": 12, "sound": SOUND[::-1].copy()}  # the same frames with another sound
    rows = [Example(value, "text", row) for row, value in enumerate([*paths, paths[0], other])]
    corpus = Corpus.write(tmp_path / "corpus", rows, HEARD, Text(units="byte"))
    assert (tmp_path / "corpus" / "source.bin").stat().st_size == 2 * SMOOTH.size
    first, last = corpus[2][0], corpus[3][0]
    assert np.array_equal(first.parts["sound"], HEARD.read(paths[0]).parts["sound"])
    assert not np.array_equal(last.parts["sound"], first.parts["sound"])


def test_a_batch_pads_each_input_by_itself():
    batch = Pairs(source=HEARD, target=Text(units="byte")).batch(films(6)[1:4], [np.array([4])] * 3)
    assert batch.source.values.shape == (3, 3, 3, 2, 1)
    assert batch.source.lengths.tolist() == [1, 2, 3]
    assert batch.source.parts["sound"].values.shape == (3, 2, 5)
    assert batch.source.parts["sound"].lengths.tolist() == [1, 2, 0]


def test_a_share_of_the_sources_lacks_one_input_and_never_both():
    lengths, heard = np.full(4000, 7), np.where(np.arange(4000) % 4, 5, 0)
    source = Padded(np.zeros((4000, 7)), lengths, {"sound": Padded(np.zeros((4000, 5)), heard)})
    found = MissingInputs(part="sound", share=0.5)(source, np.random.default_rng(1))
    own, sound = found.lengths, found.parts["sound"].lengths
    assert ((own > 0) | (sound > 0)).all()
    assert (own[heard == 0] == 7).all()  # what has one input keeps it
    of_two = heard > 0
    assert 0.22 < (own[of_two] == 0).mean() < 0.28
    assert 0.22 < (sound[of_two] == 0).mean() < 0.28
    assert (lengths == 7).all()


def test_data_in_the_cache_belong_to_the_settings_of_all_inputs():
    def keys(**settings) -> tuple[str, str]:
        missing = settings.pop("missing", 0.0)
        codec = Video(sound=Audio(**{"rate": 8000, "normalise": False, **settings}), missing=missing)
        return codec_key(codec), str(codec_settings(codec))

    assert keys() == keys(missing=0.3)  # what training leaves out is in the cache
    for other in (keys(mels=20), keys(rate=16000)):
        assert all(ours != theirs for ours, theirs in zip(keys(), other))


def test_each_input_is_augmented_by_its_codec():
    sound = Audio(rate=8000, mels=20, frequency_masks=2, frequency_width=9)
    task = Pairs(source=Video(size=3, width=2, sound=sound), target=Text(units="byte"))
    assert task.augments
    values = films(6)[1:4]
    for each in values:
        each.parts["sound"] = np.ones((4, sound.features), dtype=np.float32)
    batch = task.batch(values, [np.array([4])] * 3)
    changed = task.augment(batch, np.random.default_rng(1))
    assert np.array_equal(changed.source.values, batch.source.values)
    assert 0 < (changed.source.parts["sound"].values == 0).float().mean() < 1
    assert (batch.source.parts["sound"].values == 1).all()


# -- mouths


def same_film(one, two) -> bool:
    return all(np.array_equal(one.source[key], two.source[key]) for key in ("frames", "sound"))


def test_mouths_are_a_function_of_the_seed_and_fewer_are_the_first():
    many, again, other = mouths(12, 3), mouths(5, 3), mouths(12, 4)
    assert all(same_film(one, two) and one.target == two.target for one, two in zip(many, again))
    assert not any(same_film(one, two) for one, two in zip(many, other))


def test_sound_lasts_as_long_as_its_film_and_words_stand_in_their_places():
    for example in mouths(60, shortest=2, longest=4):
        film, words = example.source, example.target.split()
        assert len(film["sound"]) * FPS == len(film["frames"]) * RATE
        letters, spaces = len("".join(words)), len(words) - 1
        assert 2 * letters <= len(film["frames"]) - spaces - 2 <= 4 * letters
        begins = [place for place, known in enumerate(SENTENCE) if words[0] in known]
        assert any(
            all(word in SENTENCE[begin + step] for step, word in enumerate(words))
            for begin in begins
            if begin + len(words) <= len(SENTENCE)
        )


def spoken(text: str, render_only: bool = False):
    random = np.random.default_rng(1)
    return render(random, list(text), 0.0) if render_only else pronounce(random, list(text), 40.0)


def test_lips_do_not_tell_homophemes_and_sounds_do_not_tell_homophones():
    assert np.array_equal(spoken("pat", True), spoken("bad", True))
    assert not np.array_equal(spoken("pat", True), spoken("mat", True))
    assert np.array_equal(spoken("no"), spoken("mu"))
    assert not np.array_equal(spoken("pat"), spoken("bad"))


def test_the_sound_is_as_many_decibels_above_its_noise_as_is_said():
    text = list("a red dog on land")
    clean = pronounce(np.random.default_rng(1), text, 60.0).astype(float)
    noisy = pronounce(np.random.default_rng(1), text, 0.0).astype(float)
    share = np.corrcoef(clean, noisy)[0, 1] ** 2  # of the noisy sound's power that is the voice
    voiced = 1 - sum(letter == " " for letter in text) / len(text)
    assert share == pytest.approx(voiced / (1 + voiced), abs=0.05)


@pytest.mark.parametrize("settings", [{"words": 7}, {"noise": -1}, {"snr": 90}, {"shortest": 0}, {"longest": 2}])
def test_mouths_out_of_bounds_are_refused(settings):
    with pytest.raises(SeqloomError, match=f"mouths: {next(iter(settings))}|{next(iter(settings))} = "):
        mouths(1, **settings)
