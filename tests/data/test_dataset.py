"""Dataset: an honest hold-out, codecs that saw the training part only, a cache never trusted blindly."""

import gzip
import io
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from seqloom.contracts import Codec
from seqloom.data import dataset
from seqloom.data.codecs.text import Text
from seqloom.data.corpus import Corpus
from seqloom.data.dataset import prepare
from seqloom.data.readers import from_pairs
from seqloom.errors import SeqloomError


class Counting(Text):
    """A text codec that counts what it encodes and keeps what it is fitted on."""

    def __init__(self, **options):
        super().__init__(**options)
        self.encoded, self.seen = 0, []

    def fit(self, values):
        self.seen = list(values)
        return super().fit(self.seen)

    def encode_many(self, values):
        self.encoded += len(values)
        return super().encode_many(values)


def pairs(count, each=1):
    return [(f"source {number // each}", f"target {number}") for number in range(count)]


def written(path, rows):
    path.write_text("".join(f"{source}\t{target}\n" for source, target in rows), encoding="utf-8")
    return path


def prepared(train, cache, valid=None, **options):
    options = {"source": Text(units="char"), "target": Text(units="char"), "seed": 1} | options
    return prepare(train, valid, cache=cache / "cache", **options)


def sources(corpus, codec):
    return [codec.decode(corpus[index][0]) for index in range(len(corpus))]


@pytest.mark.parametrize("each", [1, 3])
def test_no_source_stands_on_both_sides(tmp_path, each):
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


def test_a_source_is_held_out_or_not_wherever_it_stands(tmp_path):
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
    assert (report.read, report.skipped, report.train, report.valid) == (17, 2, 15, 1)
    assert (report.duplicates, report.ambiguous, report.leaks) == (2, 1, 0)
    assert (report.length_ratio, report.longest_target) == (6.0, 6)
    text = "\n".join(report.lines())
    assert "1 x 1 column (first at line 5)" in text
    assert "Duplicate pairs: 2." in text
    assert "several targets: 1." in text


def test_a_second_call_does_not_encode_again(tmp_path):
    path = written(tmp_path / "pairs.tsv", pairs(100))
    first, second, third = (Counting(units="char") for _ in range(3))
    data = prepared([path], tmp_path, source=first, target=first)
    again = prepared([path], tmp_path, source=second, target=second)
    assert first.encoded == 200
    assert second.encoded == 0
    assert np.array_equal(data.train[5][1], again.train[5][1])
    written(path, [*pairs(99), ("source 99", "another")])
    prepared([path], tmp_path, source=third, target=third)
    assert third.encoded == 200


@pytest.mark.parametrize("change", [{"seed": 2}, {"max_valid": 3}, {"source": Counting(units="byte")}])
def test_another_question_is_not_answered_from_the_cache(tmp_path, change):
    prepared(pairs(100), tmp_path)
    target = Counting(units="char")
    prepared(pairs(100), tmp_path, target=target, **change)
    assert target.encoded == 100


def test_a_damaged_entry_is_written_anew(tmp_path):
    data = prepared(pairs(100), tmp_path)
    wanted = [data.train[index][1].tolist() for index in range(len(data.train))]
    (data.train.folder / "target.bin").write_bytes(b"half")
    again = prepared(pairs(100), tmp_path)
    assert [again.train[index][1].tolist() for index in range(len(again.train))] == wanted


def test_an_interrupted_encoding_leaves_no_entry(tmp_path):
    class Failing(Counting):
        def encode_many(self, values):
            raise KeyboardInterrupt

    codec = Failing(units="char")
    with pytest.raises(KeyboardInterrupt):
        prepared(pairs(100), tmp_path, target=codec)
    assert [path for path in (tmp_path / "cache").rglob("*") if path.is_file()] == []


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


def test_a_bad_line_of_standard_input_is_named_so(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\tb\nbad\n")))
    with pytest.raises(SeqloomError, match=r"^standard input, line 2: expected 2 columns"):
        prepared(["-"], tmp_path)


def test_no_data_is_told(tmp_path):
    for train in ([], [tmp_path / "nowhere"]):
        with pytest.raises(SeqloomError):
            prepared(train, tmp_path)


def test_values_that_are_no_text_are_split_and_cached_too(tmp_path):
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


def test_processes_that_write_at_once_do_not_harm_each_other(tmp_path):
    path = written(tmp_path / "pairs.tsv", pairs(3000))
    program = (
        "import sys; from pathlib import Path; from seqloom.data.dataset import prepare; "
        "from seqloom.data.codecs.text import Text; codec = Text(units='byte')\n"
        "for seed in range(8):\n"
        "    data = prepare([sys.argv[1]], source=codec, target=codec, seed=seed, cache=Path(sys.argv[2]))\n"
        "    assert len(data.train) == 2700\n"
        "    assert codec.decode(data.train[2699][1]).startswith('target ')\n"
    )
    runs = [subprocess.Popen([sys.executable, "-c", program, str(path), str(tmp_path / "cache")]) for _ in range(2)]
    assert [run.wait() for run in runs] == [0, 0]
    entries = [entry for entry in (tmp_path / "cache").iterdir() if entry.name != "remembered"]
    assert len(entries) == 8
    for entry in entries:
        assert sorted(folder.name for folder in entry.iterdir()) == ["train", "valid"]
        assert len(Corpus.open(entry / "train")) == 2700


# -- what is remembered of files


def aged(path):
    """As if it had been at rest for a while."""
    os.utime(path, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns - 10_000_000_000))
    return path


def unread(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("read again")

    monkeypatch.setattr(dataset, "read", refuse)


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("joint", [True, False])
def test_files_that_have_not_changed_are_not_read_again(tmp_path, monkeypatch, given, joint):
    train = aged(written(tmp_path / "train.tsv", [*pairs(300), ("source 1", "target 1")]))
    with (tmp_path / "train.tsv").open("a") as file:
        file.write("bad line\n")
    aged(train)
    valid = [aged(written(tmp_path / "valid.tsv", [("source 1", "x")]))] if given else None

    def sides():
        one = Text(units="bpe", size=60)
        return {"source": one, "target": one, "joint": True} if joint else {"source": Text(units="char"), "target": one}

    first_sides, again_sides = sides(), sides()
    first = prepared([train], tmp_path, valid, skip_bad=True, **first_sides)
    unread(monkeypatch)
    again = prepared([train], tmp_path, valid, skip_bad=True, **again_sides)
    assert again.report == first.report
    assert again.report.lines() == first.report.lines()
    assert again.valid_examples == first.valid_examples
    assert again.train.folder == first.train.folder
    assert again_sides["target"].fingerprint() == first_sides["target"].fingerprint()
    assert again_sides["source"].fingerprint() == first_sides["source"].fingerprint()


@pytest.mark.parametrize(
    "change",
    [
        lambda path: {"seed": 2},
        lambda path: {"max_valid": 3},
        lambda path: {"max_characters": 50},
        lambda path: {"target": Text(units="word")},
        lambda path: {"target": Text(units="char", lowercase=True)},
        lambda path: aged(written(path, [*pairs(200), ("more", "than before")])) and {},
        lambda path: os.utime(path, (1, 1)) or {},
    ],
)
def test_another_file_or_setting_is_read(tmp_path, monkeypatch, change):
    path = aged(written(tmp_path / "train.tsv", pairs(200)))
    prepared([path], tmp_path)
    options = change(path)
    unread(monkeypatch)
    with pytest.raises(AssertionError, match="read again"):
        prepared([path], tmp_path, **options)


def test_a_file_written_a_moment_ago_and_a_codec_of_ones_own_are_not_remembered(tmp_path, monkeypatch):
    fresh = written(tmp_path / "fresh.tsv", pairs(100))
    old = aged(written(tmp_path / "old.tsv", pairs(100)))
    prepared([fresh], tmp_path)
    prepared([old], tmp_path, target=Counting(units="char"))
    assert not (tmp_path / "cache" / "remembered").exists()


def test_what_is_remembered_and_damaged_or_gone_is_found_anew(tmp_path):
    path = aged(written(tmp_path / "train.tsv", pairs(200)))
    first = prepared([path], tmp_path)
    (memory,) = (tmp_path / "cache" / "remembered").iterdir()
    for damage in (
        lambda: (memory / "known.json").write_text("{"),
        lambda: (memory / "known.json").write_text('{"key": "x"}'),
        lambda: next(memory.glob("target*")).unlink(),
        lambda: shutil.rmtree(first.train.folder),
    ):
        damage()
        again = prepared([path], tmp_path)
        assert again.report == first.report
        assert np.array_equal(again.train.lengths, first.train.lengths)


def test_fitted_codecs_of_another_run_have_a_memory_of_their_own(tmp_path, monkeypatch):
    path = aged(written(tmp_path / "train.tsv", pairs(200)))
    known = Text(units="char").fit(["source target 0123456789"])
    other = Text(units="char").fit(["abcdefghijklmnopqrstuvwxyz 0123456789"])
    given = {"source": known, "target": known, "fit": False}
    first = prepared([path], tmp_path, **given)
    second = prepared([path], tmp_path, **{**given, "target": other})
    assert first.train.folder != second.train.folder
    unread(monkeypatch)
    assert prepared([path], tmp_path, **given).train.folder == first.train.folder
