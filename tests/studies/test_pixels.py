"""Measures of models of pictures, and where the pictures of studies come from."""

import gzip
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import PIL.Image
import pytest

from seqloom.data.codecs.pixels import Pixels
from seqloom.studies.measures.pixels import as_text, completed, from_text, nats_and_halves, with_lower_half
from seqloom.studies.pictures import completions
from seqloom.studies.sources import pixels as sources
from seqloom.studies.study import Splits
from seqloom.tasks.series import Series
from seqloom.types import Example


def test_binary_digits_are_the_bits_of_their_file_and_are_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    home = tmp_path / "data" / "binarized-mnist"
    home.mkdir(parents=True)
    bits = np.random.default_rng(1).integers(0, 2, (3, 784), dtype=np.uint8)
    for split in ("train", "valid", "test"):
        with gzip.open(home / f"{split}.bits.gz", "wb") as file:
            file.write(np.packbits(bits, axis=1).tobytes())
    monkeypatch.setenv("SEQLOOM_DATA", str(tmp_path / "data"))
    sources.binary_digits.cache_clear()
    splits = sources.binary_digits(tmp_path)
    (table,) = splits.train
    names = Path(table).read_text().splitlines()
    for name, row in zip(names, bits):
        picture = np.asarray(PIL.Image.open(tmp_path / "binary-digits" / name))
        assert np.array_equal(Pixels(size=28).encode(picture) - 4, row)
    before = Path(table).stat().st_mtime_ns
    sources.binary_digits.cache_clear()
    assert sources.binary_digits(tmp_path) == splits
    assert Path(table).stat().st_mtime_ns == before
    sources.binary_digits.cache_clear()


class Symmetric:
    """Likes pictures whose halves are equal."""

    task = Series(target=Pixels(size=4))

    def examples(self, paths):
        return [Example(None, np.full((4, 4), value, dtype=np.uint8)) for value in (0, 255, 0)]

    def score(self, pictures):
        return [-float(np.abs(each[:2].astype(int) - each[2:]).sum()) for each in pictures]

    def complete(self, picture, *, count, **options):
        return None, [SimpleNamespace(value=np.full((4, 4), value, dtype=np.uint8)) for value in (0, *[255] * count)]

    def evaluate(self, examples):
        return {"nats": 3.0, "examples": 3}


def test_halves_that_belong_together_are_counted():
    found = nats_and_halves(Symmetric(), Splits([], None, []))
    assert found == {"nats": 3.0, "own_half_likelier": pytest.approx(200 / 3)}
    mixed = with_lower_half(np.zeros((4, 2)), np.ones((4, 2)))
    assert mixed.tolist() == [[0, 0], [0, 0], [1, 1], [1, 1]]


def test_completions_are_shown_beside_the_picture_and_its_upper_half():
    shown = completed(Symmetric(), Splits([], None, []))
    assert shown["shape"] == [4, 4]
    assert [len(row) for row in shown["rows"]] == [7, 7, 7]
    (panel,) = completions({"rows": [{"variant": "gated", "shown": shown}, {"variant": "not yet"}]}).axes
    drawn = panel.images[0].get_array()
    assert drawn.shape == (3 * 5, 8 * 5)
    assert (drawn[:4, :4] == 0).all()
    assert drawn[:4, 5:9].tolist() == [[0] * 4] * 2 + [[0.5] * 4] * 2
    assert (drawn[:4, 10:14] == 1).all()


def test_black_and_white_survives_as_text():
    picture = np.random.default_rng(1).integers(0, 2, (3, 5, 7)).astype(np.uint8) * 255
    assert np.array_equal(from_text(as_text(picture), [3, 5, 7]) * 255, picture)
