"""Pictures: any common format becomes the pixels that were meant, stored once; broken ones are refused in one line."""

import io
import struct
import tracemalloc
import warnings
import zlib
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
from PIL import ImageOps

from seqloom.data.codecs.image import Image
from seqloom.data.codecs.random_shifts import RandomShifts
from seqloom.data.codecs.text import Text
from seqloom.data.corpus import Corpus
from seqloom.data.generators.catalogue import write_examples
from seqloom.data.generators.scenes import COLOURS, LARGE, RELATIONS, SHAPES, covered, scenes
from seqloom.data.keys import codec_key
from seqloom.errors import SeqloomError
from seqloom.tasks.pairs import Pairs
from seqloom.types import Example, Padded

RANDOM = np.random.default_rng(1)
SMOOTH = np.clip(np.indices((24, 24)).sum(0)[:, :, None] * [5, 3, 1] + [0, 40, 90], 0, 255).astype(np.uint8)
CODEC = Image(size=24)


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def complaint(function, *arguments, **options):
    with pytest.raises(SeqloomError) as caught:
        function(*arguments, **options)
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


def stored(path: Path, image, **options) -> str:
    image = PIL.Image.fromarray(image) if isinstance(image, np.ndarray) else image
    image.save(path, **options)
    return str(path)


# -- what is read


@pytest.mark.parametrize("suffix", ["png", "bmp", "tiff", "ppm", "webp"])
def test_a_file_without_losses_is_its_pixels(tmp_path, suffix):
    pixels = RANDOM.integers(0, 256, (24, 24, 3), dtype=np.uint8)
    path = stored(tmp_path / f"a.{suffix}", pixels, **({"lossless": True} if suffix == "webp" else {}))
    assert np.array_equal(CODEC.encode(path), pixels)
    assert CODEC.encode(path).dtype == np.uint8


@pytest.mark.parametrize("suffix", ["jpg", "gif", "webp"])
def test_a_file_with_losses_is_nearly_its_pixels(tmp_path, suffix):
    path = stored(tmp_path / f"a.{suffix}", SMOOTH)
    assert np.abs(CODEC.encode(path).astype(int) - SMOOTH).mean() < 6


def test_arrays_tensors_lists_and_images_are_the_same_picture():
    torch = pytest.importorskip("torch")
    for value in (
        SMOOTH,
        torch.from_numpy(SMOOTH),
        SMOOTH.tolist(),
        SMOOTH.astype(np.int64),
        PIL.Image.fromarray(SMOOTH),
    ):
        assert np.array_equal(CODEC.encode(value), SMOOTH)
    grey = SMOOTH[:, :, 0]
    for value in (grey, grey[:, :, None], PIL.Image.fromarray(grey)):
        assert np.array_equal(CODEC.encode(value), np.repeat(grey[:, :, None], 3, axis=2))
        assert np.array_equal(Image(size=24, grey=True).encode(value), grey[:, :, None])


def test_crop_keeps_the_middle_stretch_the_whole_and_pad_adds_grey():
    wide = np.zeros((10, 30, 3), dtype=np.uint8)
    wide[:, :10], wide[:, 10:20], wide[:, 20:] = 50, 150, 250
    assert (Image(size=10, fit="crop").encode(wide) == 150).all()
    stretched = Image(size=30, fit="stretch").encode(wide)
    assert (stretched[:, [0, 15, 29]] == np.array([50, 150, 250])[None, :, None]).all()
    padded = Image(size=30, fit="pad").encode(wide)
    assert (padded[:10] == 127).all()
    assert (padded[20:] == 127).all()
    assert np.array_equal(padded[10:20], wide)
    assert Image(size=8, width=20).encode(wide).shape == Image(size=8, width=20).shape == (8, 20, 3)
    thin = np.full((1, 4000, 3), 9, dtype=np.uint8)
    assert (Image(size=5, fit="pad").encode(thin)[2] == 9).all()


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_picture_is_turned_as_its_exif_data_says(tmp_path, orientation):
    exif = PIL.Image.Exif()
    exif[0x0112] = orientation
    path = stored(tmp_path / "a.png", SMOOTH, exif=exif)
    turns = {
        1: SMOOTH,
        2: SMOOTH[:, ::-1],
        3: SMOOTH[::-1, ::-1],
        4: SMOOTH[::-1],
        5: SMOOTH.transpose(1, 0, 2),
        6: np.rot90(SMOOTH, -1),
        7: SMOOTH[::-1, ::-1].transpose(1, 0, 2),
        8: np.rot90(SMOOTH, 1),
    }
    assert np.array_equal(CODEC.encode(path), turns[orientation])


def test_what_is_transparent_is_white_and_16_bits_become_8(tmp_path):
    see_through = np.dstack([SMOOTH, np.where(np.arange(24) < 12, 255, 0).astype(np.uint8)[None].repeat(24, 0)])
    found = CODEC.encode(stored(tmp_path / "a.png", see_through))
    assert np.array_equal(found[:, :12], SMOOTH[:, :12])
    assert (found[:, 12:] == 255).all()
    deep = (np.arange(24 * 24, dtype=np.uint16) * 113).reshape(24, 24)
    found = Image(size=24, grey=True).encode(stored(tmp_path / "b.png", PIL.Image.fromarray(deep)))
    assert np.array_equal(found[:, :, 0], deep >> 8)


def test_an_image_that_is_given_stays_as_it_was():
    exif = PIL.Image.Exif()
    exif[0x0112] = 6
    file = io.BytesIO()
    PIL.Image.fromarray(SMOOTH).save(file, "JPEG", exif=exif)
    given = PIL.Image.open(io.BytesIO(file.getvalue()))
    again = PIL.Image.open(io.BytesIO(file.getvalue()))
    assert np.abs(CODEC.encode(given).astype(int) - np.asarray(ImageOps.exif_transpose(again))).max() == 0
    assert (given.size, given.mode, given.getexif()[0x0112]) == ((24, 24), "RGB", 6)


# -- what is refused


def png_that_claims(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(99))) + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize("side", [9_000, 12_000, 30_000, 2**31 - 1])
def test_a_decompression_bomb_is_refused_by_its_header(tmp_path, side):
    path = tmp_path / "bomb.png"
    path.write_bytes(png_that_claims(side, side))
    tracemalloc.start()
    said = complaint(CODEC.encode, str(path))
    assert tracemalloc.get_traced_memory()[1] < 3e6
    tracemalloc.stop()
    assert "has more than 50,000,000 pixels" in said
    assert "max_pixels" in said


def test_the_limit_holds_for_arrays_and_images_and_can_be_changed():
    narrow = Image(size=4, max_pixels=24 * 24 - 1)
    assert "(24 x 24)" in complaint(narrow.encode, SMOOTH)
    assert "(24 x 24)" in complaint(narrow.encode, PIL.Image.fromarray(SMOOTH))
    assert Image(size=4, max_pixels=24 * 24).encode(SMOOTH).shape == (4, 4, 3)


def encoded_or_refused(path: str) -> object:
    """The shape of a picture, or how many lines say why it is none."""
    try:
        return CODEC.encode(path).shape
    except SeqloomError as error:
        return len(str(error).splitlines())


@pytest.mark.parametrize("suffix", ["png", "jpg", "gif", "webp", "bmp", "tiff"])
def test_a_truncated_or_damaged_file_is_refused(tmp_path, suffix):
    whole = Path(stored(tmp_path / f"a.{suffix}", RANDOM.integers(0, 256, (24, 24, 3), dtype=np.uint8))).read_bytes()
    cut = tmp_path / f"cut.{suffix}"
    for size in (len(whole) // 2, 30, 3, 0):
        cut.write_bytes(whole[:size])
        assert "is not a readable picture" in complaint(CODEC.encode, str(cut))
    for seed in range(60):  # whatever is in it: a picture, or one line
        damaged = np.frombuffer(whole, dtype=np.uint8).copy()
        damaged[np.random.default_rng(seed).integers(0, len(damaged), 8)] ^= 0xFF
        cut.write_bytes(damaged.tobytes())
        assert encoded_or_refused(str(cut)) in ((24, 24, 3), 1)


@pytest.mark.parametrize("suffix", ["gif", "png", "webp", "tiff"])
def test_an_animated_picture_is_refused(tmp_path, suffix):
    frames = [PIL.Image.fromarray(SMOOTH), PIL.Image.fromarray(SMOOTH[::-1].copy())]
    path = stored(tmp_path / f"a.{suffix}", frames[0], save_all=True, append_images=frames[1:])
    assert "is animated, or has several pages" in complaint(CODEC.encode, path)


def test_files_that_are_no_pictures_are_refused(tmp_path):
    (tmp_path / "a.png").write_text("hello")
    (tmp_path / "b.eps").write_text(
        "%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\nshowpage\n"
    )  # would run a program
    for name in ("a.png", "b.eps"):
        assert "(unknown format)" in complaint(CODEC.encode, str(tmp_path / name))
    assert "there is no such file" in complaint(CODEC.encode, "nowhere.png")
    assert "not a regular file" in complaint(CODEC.encode, str(tmp_path))
    assert "not a regular file" in complaint(CODEC.encode, "/dev/zero")
    assert "cannot be read" in complaint(CODEC.encode, "a\0.png")


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        (SMOOTH / 255, "holds float64 values"),
        (SMOOTH.astype(int) * 2, "holds 0 to 460"),
        (SMOOTH[:, :, :2], "[24, 24, 2]"),
        (SMOOTH[None], "[1, 24, 24, 3]"),
        (np.zeros((0, 4, 3), dtype=np.uint8), "[0, 4, 3]"),
        ([[1, 2], [3]], "ragged"),
        (7, "shape []"),
        (PIL.Image.fromarray(np.ones((9, 9), dtype=np.float32)), "32 bits"),
    ],
)
def test_values_that_are_no_pictures_are_refused(value, wrong):
    assert wrong in complaint(CODEC.encode, value)


@pytest.mark.parametrize("settings", [{"size": 0}, {"size": 9999}, {"width": 0}, {"shift": 64}, {"max_pixels": 0}])
def test_settings_out_of_bounds_are_refused(settings):
    with pytest.raises(ValueError, match=f"{next(iter(settings))} = "):
        Image(**settings)


def test_a_picture_is_no_target():
    with pytest.raises(ValueError, match="image can be a source, not a target"):
        Pairs(source=Text(), target=Image())


# -- stored once


def test_a_picture_of_five_captions_is_stored_once_as_bytes(tmp_path):
    pictures = RANDOM.integers(0, 256, (60, 32, 32, 3), dtype=np.uint8)
    names = [stored(tmp_path / f"{number}.png", each) for number, each in enumerate(pictures)]
    rows = [Example(names[row % 60], f"caption {row}", row) for row in range(300)]
    codec, words = Image(size=32), Text(units="char").fit(["caption 0123456789"])
    corpus = Corpus.write(tmp_path / "corpus", rows, codec, words)
    size = (tmp_path / "corpus" / "source.bin").stat().st_size
    assert size == 60 * 32 * 32 * 3
    everything = sum(path.stat().st_size for path in (tmp_path / "corpus").iterdir())
    captions = (tmp_path / "corpus" / "target.bin").stat().st_size
    assert everything - captions <= 1.1 * size
    for number, row in enumerate(rows):
        source, target = corpus[number]
        assert source is not None
        assert source.dtype == np.uint8
        assert np.array_equal(source, pictures[number % 60])
        assert words.decode(target) == row.target


def test_equal_pictures_of_other_names_and_arrays_are_stored_once(tmp_path):
    names = [stored(tmp_path / "a.png", SMOOTH), stored(tmp_path / "b.bmp", SMOOTH)]
    values = [names[0], SMOOTH, names[1], SMOOTH[::-1].copy(), names[0]]
    rows = [Example(value, "text", row) for row, value in enumerate(values)]
    corpus = Corpus.write(tmp_path / "corpus", rows, CODEC, Text(units="byte"))
    assert (tmp_path / "corpus" / "source.bin").stat().st_size == 2 * SMOOTH.size
    assert [bool((corpus[row][0] == SMOOTH).all()) for row in range(5)] == [True, True, True, False, True]


def test_a_file_of_several_captions_is_decoded_once_per_pass(tmp_path, monkeypatch):
    name, codec, decoded = stored(tmp_path / "a.png", SMOOTH), Image(size=24), []
    encode = codec.encode
    monkeypatch.setattr(codec, "encode", lambda *given: decoded.append(given) or encode(*given))
    contents = {codec.content(name) for _ in range(5)}
    assert len(contents) == len(decoded) == 1
    stored(tmp_path / "a.png", SMOOTH[::-1].copy())  # another picture under the same name
    assert codec.content(name) not in contents


def test_a_batch_keeps_bytes_and_augmentation_moves_pixels(tmp_path):
    task = Pairs(source=Image(size=24, shift=3, mirror=True), target=Text(units="byte"))
    batch = task.batch([SMOOTH, SMOOTH[::-1]], [np.array([4]), np.array([4, 5])])
    assert str(batch.source.values.dtype) == "torch.uint8"
    assert task.augments
    moved = task.augment(batch, np.random.default_rng(1))
    assert moved.source.values.shape == batch.source.values.shape
    assert not np.array_equal(moved.source.values, batch.source.values)
    assert codec_key(Image(shift=3)) == codec_key(Image())  # pictures are the same in the cache


def test_a_shift_is_a_shift_with_its_edge_repeated_and_a_mirror_image_a_mirror_image():
    row = np.arange(5, dtype=np.uint8)[None, None, :, None].repeat(400, 0)  # (400, 1, 5, 1)
    found = RandomShifts(shift=0, mirror=True)(Padded(row, np.ones(400)), np.random.default_rng(1)).values
    kinds, counts = np.unique(found[:, 0, :, 0], axis=0, return_counts=True)
    assert kinds.tolist() == [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0]]
    assert 160 <= counts[0] <= 240
    found = RandomShifts(shift=1, mirror=False)(Padded(row, np.ones(400)), np.random.default_rng(1)).values
    assert np.unique(found[:, 0, :, 0], axis=0).tolist() == [[0, 0, 1, 2, 3], [0, 1, 2, 3, 4], [1, 2, 3, 4, 4]]
    assert np.array_equal(
        RandomShifts(shift=0, mirror=False)(Padded(row, np.ones(400)), np.random.default_rng(1)).values, row
    )


def test_references_of_a_picture_are_grouped_by_path_and_by_pixels(tmp_path):
    task = Pairs(source=CODEC, target=Text(units="word"), group_references=True)
    name = stored(tmp_path / "a.png", SMOOTH)
    values = [name, SMOOTH, name, SMOOTH.copy(), SMOOTH[::-1].copy()]
    sources, references = task.references(Example(value, str(row)) for row, value in enumerate(values))
    assert references == [["0", "2"], ["1", "3"], ["4"]]
    assert sources[0] == name
    assert sources[1] is values[1]


# -- scenes


def test_scenes_are_a_function_of_the_seed_and_fewer_are_the_first():
    many, again, other = scenes(40, 3), scenes(15, 3), scenes(40, 4)
    assert all(np.array_equal(one.source, two.source) and one.target == two.target for one, two in zip(many, again))
    assert sum(one.target == two.target for one, two in zip(many, other)) < 5
    assert len({one.source.tobytes() for one in many}) == 40


def test_a_scene_shows_what_its_caption_says():
    for example in scenes(200, noise=0):
        _, colour, shape, *relation, _, other, other_shape = example.target.split()
        assert (colour in COLOURS) == (other in COLOURS) == (" ".join(relation) in RELATIONS) is True
        centres = []
        for name in dict.fromkeys((colour, other)):
            places = np.argwhere((example.source == COLOURS[name]).all(2))
            assert len(places)
            centres.append(places.mean(0))
        if colour == other:
            continue
        down, right = centres[1] - centres[0]
        way = {"left of": right, "right of": -right, "above": down, "below": -down}[" ".join(relation)]
        assert way > abs({"left": down, "right": down}.get(relation[0], right))
        assert {shape, other_shape} <= {*SHAPES}


def test_shapes_cover_their_share_of_a_square():
    shares = {shape: covered(shape, 400, 200, 200, 300).sum() / 300**2 for shape in SHAPES}
    expected = {"circle": np.pi / 4, "square": 1, "triangle": 1 / 2, "cross": 5 / 9}
    assert shares == pytest.approx(expected, abs=0.01)
    assert LARGE[0] > 8


def test_scenes_are_written_as_files_that_are_read(tmp_path):
    examples = scenes(3)
    write_examples(tmp_path / "few.tsv", examples, 5)
    lines = (tmp_path / "few.tsv").read_text().splitlines()
    assert [line.split("\t")[0] for line in lines] == [f"few/00000{number}.png" for number in (5, 6, 7)]
    for line, example in zip(lines, examples):
        name, caption = line.split("\t")
        assert np.array_equal(Image(size=32).encode(str(tmp_path / name)), example.source)
        assert caption == example.target
