"""Dataset: an honest hold-out, codecs fitted on the training part only, a true report."""

import gzip
import io
import sys

import numpy as np
import pytest

from seqloom.contracts import Codec
from seqloom.data.codecs.text import Text
from seqloom.data.readers import from_pairs
from seqloom.errors import SeqloomError
from tests.data.pairs import Counting, pairs, prepared, written


def sources(corpus, codec):
    return [codec.decode(corpus[index][0]) for index in range(len(corpus))]


@pytest.mark.parametrize("each", [1, 3])
def test_no_source_is_on_both_sides(tmp_path, each):
    codec = Text(units="byte")
    data = prepared(pairs(900, each), tmp_path, source=codec)
    train, valid = sources(data.train, codec), sources(data.valid, codec)
    assert set(train).isdisjoint(valid)
    assert sorted(train + valid) == sorted(source for source, _ in pairs(900, each))
    assert 80 <= len(valid) <= 90
    assert [example.source for example in data.valid_examples] == valid
    assert data.report.held_out


def test_the_hold_out_depends_on_the_seed_and_is_capped(tmp_path):
    first, again, other = (prepared(pairs(500), tmp_path, seed=seed).valid_examples for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert len(prepared(pairs(500), tmp_path, max_valid=7).valid_examples) == 7


def test_which_sources_are_held_out_does_not_depend_on_their_order(tmp_path):
    forward = prepared(pairs(500), tmp_path).valid_examples
    backward = prepared(pairs(500)[::-1], tmp_path).valid_examples
    assert {example.source for example in forward} == {example.source for example in backward}


def test_few_sources_still_leave_something_to_train_on(tmp_path):
    data = prepared([("often", str(number)) for number in range(50)] + [("once", "x")], tmp_path)
    assert [example.source for example in data.valid_examples] == ["once"]
    assert (len(data.train), len(data.valid)) == (50, 1)
    assert len(prepared([("a", "b"), ("c", "d")], tmp_path).train) == 1
    with pytest.raises(SeqloomError, match="only one distinct source"):
        prepared([("a", "b"), ("a", "c")], tmp_path)


def test_a_language_model_is_held_out_by_its_text(tmp_path):
    texts = [f"text {number // 2}" for number in range(100)]
    path = tmp_path / "text.txt"
    path.write_text("\n".join(texts))
    codec = Text(units="byte")
    data = prepared([path], tmp_path, source=None, target=codec)
    train = {codec.decode(data.train[index][1]) for index in range(len(data.train))}
    assert train.isdisjoint(example.target for example in data.valid_examples)
    assert data.train[0][0] is None
    assert data.report.length_ratio == 0
    assert data.report.duplicates == 50
    same = prepared(list(from_pairs(texts, 1)), tmp_path, source=None, target=codec)
    assert [example.target for example in same.valid_examples] == [example.target for example in data.valid_examples]


def test_given_validation_data_is_kept_and_its_leaks_are_counted(tmp_path):
    train = written(tmp_path / "train.tsv", pairs(50))
    valid = written(tmp_path / "valid.tsv", [("source 3", "x"), ("source 3", "y"), ("source 7", "z"), ("new", "w")])
    data = prepared([train], tmp_path, [valid])
    assert (len(data.train), len(data.valid), data.report.leaks) == (50, 4, 2)
    assert not data.report.held_out
    assert any("training data too: 2." in line for line in data.report.lines())


def test_codecs_are_fitted_on_the_training_part_only(tmp_path):
    source, target = Counting(units="word"), Counting(units="word")
    data = prepared(pairs(200), tmp_path, source=source, target=target)
    held = {example.source for example in data.valid_examples}
    assert len(held) == 20
    assert held.isdisjoint(source.seen)
    assert len(source.seen) == len(target.seen) == 180
    assert not any("source" in text for text in target.seen)


def test_a_joint_codec_sees_both_sides_and_an_unfitted_one_is_left_alone(tmp_path):
    codec = Counting(units="char")
    prepared(pairs(20), tmp_path, source=codec, target=codec, joint=True)
    assert len(codec.seen) == 36
    before = codec.fingerprint()
    prepared([("zebra", "quagga"), ("yak", "ox")], tmp_path, source=codec, target=codec, joint=True, fit=False)
    assert codec.fingerprint() == before
    with pytest.raises(SeqloomError, match="joint"):
        prepared(pairs(20), tmp_path, joint=True)


def test_the_report_counts_what_it_says(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_bytes(
        b"a\tx\na\tx\na\ty\nb\txyzxyz\nbad\nc\td\n\xff\tq\nc\td\n" + b"".join(b"%d\tx\n" % n for n in range(9))
    )
    report = prepared([path], tmp_path, [written(tmp_path / "v.tsv", [("v", "w")])], skip_bad=True).report
    assert (report.tally.read, report.tally.skipped, report.train, report.valid) == (17, 2, 15, 1)
    assert (report.duplicates, report.ambiguous, report.leaks) == (2, 1, 0)
    assert (report.length_ratio, report.longest_target) == (6.0, 6)
    text = "\n".join(report.lines())
    assert "1 x 1 column (first at line 5)" in text
    assert "Duplicate pairs: 2." in text
    assert "several targets: 1." in text


def test_every_way_to_give_the_data_is_the_same(tmp_path, monkeypatch):
    rows = pairs(60)
    path = written(tmp_path / "pairs.tsv", rows)
    packed = tmp_path / "packed.tsv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
    ways = [path, [path], [str(packed)], rows, ["-"]]
    folders = {prepared(way, tmp_path).train.folder for way in ways}
    assert len(folders) == 1
    assert [entry.name for entry in (tmp_path / "cache").iterdir()] == [folders.pop().parent.name]


def test_a_bad_line_of_standard_input_names_it(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\tb\nbad\n")))
    with pytest.raises(SeqloomError, match=r"^standard input, line 2: expected 2 columns"):
        prepared(["-"], tmp_path)


def test_no_data_is_an_error(tmp_path):
    for train in ([], [tmp_path / "nowhere"]):
        with pytest.raises(SeqloomError):
            prepared(train, tmp_path)


def test_values_that_are_not_text_are_split_and_cached_too(tmp_path):
    class Points(Codec):
        def __init__(self, scale):
            self.scale, self.encoded = scale, 0

        def fit(self, values):
            return self

        def encode(self, value, source=None):
            Points.encodings += 1
            return np.array(value) * self.scale

        def decode(self, tensor, source=None):
            return tensor

        def save(self, folder, name):
            pass

        def load(self, folder, name):
            return self

    Points.encodings = 0
    rows = [(np.full((3, 2), number // 2, dtype=np.float32), f"t{number}") for number in range(40)]
    data = prepared(rows, tmp_path, source=Points(1.0))
    train = {float(data.train[index][0][0, 0]) for index in range(len(data.train))}
    assert train.isdisjoint(float(example.source[0, 0]) for example in data.valid_examples)
    assert Points.encodings == 40
    prepared(rows, tmp_path, source=Points(1.0))
    assert Points.encodings == 40
    assert prepared(rows, tmp_path, source=Points(2.0)).train[0][0].max() == 2 * data.train[0][0].max()
