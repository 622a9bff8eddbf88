"""Pictures as outputs: tokens that are their levels, values that come back, generated shapes."""

import numpy as np
import PIL.Image
import pytest

from seqloom.data.codecs.pictures import MARGIN, side_by_side
from seqloom.data.codecs.pixels import FIRST, Pixels
from seqloom.data.codecs.text import Text
from seqloom.data.dataset import prepare
from seqloom.data.generators.catalogue import as_lines, write_examples
from seqloom.data.generators.shapes import SHAPES, shapes
from seqloom.data.readers import read
from seqloom.data.special_tokens import BOS
from seqloom.errors import SeqloomError
from seqloom.tasks.series import Series

RANDOM = np.random.default_rng(1)


@pytest.mark.parametrize("levels", [2, 3, 4, 16, 255, 256])
def test_levels_are_equal_shares_of_the_grey_values_and_come_back(levels):
    codec = Pixels(size=16, levels=levels)
    ramp = np.arange(256, dtype=np.uint8).reshape(16, 16)
    tokens = codec.encode(ramp)
    assert tokens.dtype == np.int64
    assert codec.vocabulary == FIRST + levels == tokens.max() + 1
    counts = np.bincount(tokens - FIRST)
    assert counts.max() - counts.min() <= 1
    restored = codec.decode(tokens)
    assert (restored[0, 0], restored[-1, -1]) == (0, 255)
    assert np.array_equal(codec.encode(restored), tokens)
    assert levels < 256 or np.array_equal(restored, ramp)


def test_tokens_are_line_by_line_and_in_a_pixel_red_green_blue():
    picture = RANDOM.integers(0, 256, (2, 3, 3), dtype=np.uint8)
    codec = Pixels(size=2, width=3, levels=256, grey=False)
    assert codec.canvas == (2, 3, 3)
    assert (codec.encode(picture) - FIRST).tolist() == picture.reshape(-1).tolist()
    assert np.array_equal(codec.decode(codec.encode(picture)), picture)


def test_what_is_missing_of_a_picture_is_grey():
    codec = Pixels(size=2)
    assert codec.decode([FIRST + 1, FIRST]).tolist() == [[255, 0], [MARGIN, MARGIN]]


def complaint(function, *arguments):
    with pytest.raises(SeqloomError) as caught:
        function(*arguments)
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


def test_pictures_of_another_size_and_grey_ones_for_colour_are_refused_unless_they_are_to_fit():
    picture = RANDOM.integers(0, 256, (6, 8), dtype=np.uint8)
    assert "has 8 x 6 pixels; expected 6 x 6, or set fit" in complaint(Pixels(size=6).encode, picture)
    in_colour = Pixels(size=6, width=8, grey=False)
    assert "is grey; expected a picture in colour" in complaint(in_colour.encode, picture)
    assert len(in_colour.encode(np.stack([picture] * 3, axis=-1))) == 144
    assert len(Pixels(size=6, fit="crop", grey=False).encode(picture)) == 108


@pytest.mark.parametrize("settings", [{"size": 0}, {"width": 2000}, {"levels": 1}, {"levels": 257}, {"max_pixels": 0}])
def test_settings_out_of_bounds_are_refused(settings):
    with pytest.raises(ValueError, match=f"{next(iter(settings))} = "):
        Pixels(**settings)


def test_a_batch_has_bos_before_the_pixels_and_no_end():
    picture = np.array([[0, 255], [255, 255]], dtype=np.uint8)
    codec = Pixels(size=2)
    batch = Series(target=codec).batch(None, [codec.encode(picture)])
    assert batch.inputs.values.tolist() == [[BOS, FIRST, FIRST + 1, FIRST + 1]]
    assert batch.targets.values.tolist() == [[FIRST, FIRST + 1, FIRST + 1, FIRST + 1]]
    with pytest.raises(ValueError, match="no end of its own"):
        Series(target=Text())


def test_pictures_side_by_side():
    found = side_by_side([np.full((2, 3), value, dtype=np.uint8) for value in (1, 2, 3)])
    assert found.tolist() == [
        [1, 1, 1, MARGIN, 2, 2, 2],
        [1, 1, 1, MARGIN, 2, 2, 2],
        [MARGIN] * 7,
        [3, 3, 3, MARGIN, MARGIN, MARGIN, MARGIN],
        [3, 3, 3, MARGIN, MARGIN, MARGIN, MARGIN],
    ]
    assert side_by_side([np.zeros((2, 3, 3), dtype=np.uint8)]).shape == (2, 3, 3)


# -- shapes


def test_shapes_are_a_function_of_the_seed_and_fewer_are_the_first():
    many, again, other = shapes(50), shapes(20), shapes(50, seed=2)
    assert all(np.array_equal(one.target, two.target) and one.source == two.source for one, two in zip(many, again))
    assert sum(np.array_equal(one.target, two.target) for one, two in zip(many, other)) == 0
    assert {each.source for each in many} == set(SHAPES)


def test_a_shape_is_drawn_as_its_name_says():
    for example in shapes(300, noise=0.0, size=20):
        lines, columns = np.nonzero(example.target)
        height, width = np.ptp(lines) + 1, np.ptp(columns) + 1
        share = len(lines) / (height * width)
        if example.source in ("square", "bar"):
            assert share == 1
        elif example.source == "frame":
            assert len(lines) == 2 * (height + width) - 4
        elif example.source == "cross":
            assert len(lines) == height + width - 1


def test_pictures_are_written_beside_their_table_and_both_sides_are_found_there(tmp_path):
    examples = shapes(6)
    (tmp_path / "data").mkdir()
    write_examples(tmp_path / "data" / "shapes.tsv", examples)
    rows = list(read([str(tmp_path / "data" / "shapes.tsv")], located=("target",)))
    assert [each.source for each in rows] == [each.source for each in examples]
    for row, example in zip(rows, examples):
        assert np.array_equal(np.asarray(PIL.Image.open(row.target)), example.target)
    assert "name a table with --out" in complaint(as_lines, examples)


def test_pictures_of_one_class_are_held_out_by_the_picture(tmp_path):
    examples = [("ring", each.target) for each in shapes(60)]
    found = prepare(examples, source=Text(units="word"), target=Pixels(size=14), seed=1, cache=tmp_path)
    assert len(found.valid) == 6
    assert len(found.train) == 54
