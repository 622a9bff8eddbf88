"""What captions are worth that were written without looking or learning, and where pictures of studies come from."""

import gzip
import io
import zipfile
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from seqloom.data.generators.scenes import scenes
from seqloom.studies.measures.pictures import majority_caption, nearest_caption, own_and_other_picture
from seqloom.studies.sources import pictures as sources
from seqloom.studies.study import Splits
from seqloom.types import Example


def test_the_majority_is_the_most_frequent_caption_for_every_picture():
    train = [Example(None, caption) for caption in ("a", "b", "c", "b")]
    assert [*map(majority_caption(train), ["x", "y"])] == ["b", "b"]


def test_the_nearest_picture_is_the_one_that_brute_force_finds(tmp_path: Path):
    train, asked = scenes(40), [each.source for each in scenes(12, seed=2)]
    paths = []
    for number, each in enumerate(train):
        PIL.Image.fromarray(each.source).save(path := tmp_path / f"{number}.png")
        paths += [Example(str(path), each.target), Example(str(path), "another")]
    expected = []
    for picture in asked:
        squares = [((each.source / 255 - picture / 255) ** 2).sum() for each in train]
        expected.append(train[int(np.argmin(squares))].target)
    assert [*map(nearest_caption(paths, size=32), asked)] == expected


class Looking:
    """Answers with the name of the picture, which is right for its own only."""

    def examples(self, paths):
        return [Example(name, name) for name in ("a", "b", "b", "c")]

    def evaluate(self, examples):
        return {"exact": 100 * float(np.mean([each.source == each.target for each in examples])), "examples": 4}


def test_every_picture_is_replaced_by_another():
    found = own_and_other_picture(Looking(), Splits([], None, []))
    assert found == {"exact": 100.0, "examples": 4, "other_exact": 0.0}


def test_flickr_is_unpacked_once_split_by_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    home = tmp_path / "data" / "flickr8k-64px"
    home.mkdir(parents=True)
    with zipfile.ZipFile(home / "images64.zip", "w") as archive:
        for number in range(3):
            file = io.BytesIO()
            PIL.Image.new("RGB", (64, 64), (number, 0, 0)).save(file, "JPEG")
            archive.writestr(f"{number}.jpg", file.getvalue())
    for number, split in enumerate(("train", "dev", "test")):
        with gzip.open(home / f"{split}.captions.tsv.gz", "wt") as table:
            table.writelines(f"{number}.jpg\t{one}\tA dog {one} .\n" for one in range(5))
    monkeypatch.setenv("SEQLOOM_DATA", str(tmp_path / "data"))
    splits = sources.flickr(tmp_path / "made")
    assert Path(splits.train[0]).read_text().splitlines()[4] == "train/0.jpg\tA dog 4 ."
    assert sorted(path.name for path in Path(splits.test[0]).parent.glob("*/*")) == ["0.jpg", "1.jpg", "2.jpg"]
    assert (Path(splits.test[0]).parent / "test" / "2.jpg").exists()
