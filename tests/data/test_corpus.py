"""Corpus: what was written is read back, whole or not at all, in memory that does not grow."""

import subprocess
import sys

import numpy as np
import pytest

from seqloom.contracts import Codec
from seqloom.data.codecs.text import Text
from seqloom.data.corpus import Corpus
from seqloom.errors import SeqloomError
from seqloom.types import Example

BYTES = Text(units="byte")


class Points(Codec):
    """Rows of features, as a codec of points or sounds gives them."""

    def fit(self, values):
        return self

    def encode(self, value, source=None):
        return np.array(value, dtype=np.float32)

    def decode(self, values, source=None):
        return values.tolist()

    def save(self, folder, name):
        pass

    def load(self, folder, name):
        return self


class Pointing(Points):
    """The position in the source of each token of the target."""

    def encode(self, value, source=None):
        return np.array([source.index(token) for token in value])


def examples(count):
    return (Example(f"source {number}", f"t{number}" * (number % 3), number) for number in range(1, count + 1))


def test_what_was_written_is_read(tmp_path):
    written = Corpus.write(tmp_path / "train", examples(3000), BYTES, BYTES)
    for corpus in (written, Corpus.open(tmp_path / "train")):
        assert len(corpus) == 3000
        assert corpus.lengths.shape == (3000, 2)
        assert corpus.lengths.dtype == np.int32
        for index, example in enumerate(examples(3000)):
            source, target = corpus[index]
            assert (BYTES.decode(source), BYTES.decode(target)) == (example.source, example.target)
            assert corpus.lengths[index].tolist() == [len(source), len(target)]
        assert source.dtype == target.dtype == np.int64
    assert isinstance(corpus.lengths.base, np.memmap)  # on disk
    assert BYTES.decode(corpus[-1][0]) == "source 3000"
    with pytest.raises(IndexError):
        corpus[3000]


def test_a_value_is_a_copy_that_may_be_changed(tmp_path):
    corpus = Corpus.write(tmp_path / "train", examples(3), BYTES, BYTES)
    corpus[0][1][:] = 0
    assert BYTES.decode(corpus[0][1]) == "t1"


def test_a_language_model_has_no_source(tmp_path):
    corpus = Corpus.write(tmp_path / "train", [Example(None, "abc", 1)], None, BYTES)
    assert corpus[0][0] is None
    assert corpus.lengths.tolist() == [[0, 3]]


def test_values_may_have_features_and_targets_may_point_into_their_source(tmp_path):
    points = [[[0.5, 1.0], [2.0, 3.0], [4.0, 5.0]], [[6.0, 7.0]]]
    corpus = Corpus.write(
        tmp_path / "train",
        [Example(points[0], [points[0][2], points[0][0]], 1), Example(points[1], points[1], 2)],
        Points(),
        Pointing(),
    )
    assert np.array_equal(corpus[0][0], points[0])
    assert np.array_equal(corpus[1][0], points[1])
    assert corpus[0][1].tolist() == [2, 0]
    assert corpus.lengths.tolist() == [[3, 2], [1, 1]]


def test_values_of_another_shape_are_refused(tmp_path):
    rows = [Example([[1.0, 2.0]], "a", 1), Example([[1.0, 2.0, 3.0]], "a", 2)]
    with pytest.raises(SeqloomError, match="example 2: its source"):
        Corpus.write(tmp_path / "train", rows, Points(), BYTES)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_write_leaves_nothing(tmp_path):
    def interrupted():
        yield from examples(2000)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Corpus.write(tmp_path / "train", interrupted(), BYTES, BYTES)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(SeqloomError, match="needs at least one example"):
        Corpus.write(tmp_path / "train", [], BYTES, BYTES)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_write_leaves_the_older_corpus(tmp_path):
    def interrupted():
        yield from examples(5)
        raise KeyboardInterrupt

    Corpus.write(tmp_path / "train", examples(3), BYTES, BYTES)
    with pytest.raises(KeyboardInterrupt):
        Corpus.write(tmp_path / "train", interrupted(), BYTES, BYTES)
    assert len(Corpus.open(tmp_path / "train")) == 3


def test_writing_again_replaces_the_corpus_and_spares_those_who_read_it(tmp_path):
    old = Corpus.write(tmp_path / "train", examples(3), BYTES, BYTES)
    Corpus.write(tmp_path / "train", examples(5), BYTES, BYTES)
    assert len(Corpus.open(tmp_path / "train")) == 5
    assert BYTES.decode(old[2][0]) == "source 3"
    assert [path.name for path in tmp_path.iterdir()] == ["train"]


@pytest.mark.parametrize("name", ["meta.json", "source.bin", "target.bin", "lengths.bin", "offsets.bin"])
def test_a_damaged_corpus_is_refused(tmp_path, name):
    folder = tmp_path / "train"
    for damage in (
        lambda path: path.unlink(),
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        lambda path: path.write_bytes(path.read_bytes() + b"x"),
    ):
        Corpus.write(folder, examples(10), BYTES, BYTES)
        damage(folder / name)
        with pytest.raises(SeqloomError, match="not a complete corpus"):
            Corpus.open(folder)


PEAK = """
import resource, sys, tempfile
from pathlib import Path
from seqloom.data.corpus import Corpus
from seqloom.data.codecs.text import Text
from seqloom.types import Example

def peak(count):
    rows = (Example(f"some source text {number}", "a target", number) for number in range(count))
    with tempfile.TemporaryDirectory() as folder:
        corpus = Corpus.write(Path(folder) / "train", rows, Text(units="byte"), Text(units="byte"))
        assert len(corpus) == count
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

print(peak(20_000), peak(200_000))
"""


def test_memory_stays_flat_as_the_corpus_grows():
    output = subprocess.run([sys.executable, "-c", PEAK], capture_output=True, text=True, check=True).stdout
    small, large = map(float, output.split())  # megabytes; the values alone are 24 for the larger one
    assert large - small < 8
