"""Data-set cache: unchanged files are not read again, entries are whole or not there, nothing damaged is trusted."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from seqloom.data import readers
from seqloom.data.cache import Cache
from seqloom.data.codecs.text import Text
from seqloom.storage import files
from tests.data.pairs import Counting, pairs, prepared, written


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
    entries = list((tmp_path / "cache").iterdir())
    assert len(entries) == 8
    cache = Cache(tmp_path / "cache")
    for entry in entries:
        assert not [name for name in os.listdir(entry) if name.startswith(".")]
        train, valid = cache.open(entry.name)
        assert (len(train), len(valid)) == (2700, 300)


# -- files that have not changed


def aged(path):
    """As if it had been written a while ago."""
    os.utime(path, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns - 10_000_000_000))
    return path


def unread(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("read again")

    monkeypatch.setattr(readers, "read", refuse)


def known_files(tmp_path):
    """The notes on files in all entries."""
    return [path for path in (tmp_path / "cache").glob("*/*.json") if len(path.stem) == 32]


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


def test_the_same_content_in_other_files_is_one_entry(tmp_path, monkeypatch):
    one, other = (aged(written(tmp_path / f"{name}.tsv", pairs(200))) for name in ("one", "other"))
    folders = {prepared([path], tmp_path).train.folder for path in (one, other)}
    assert len(folders) == 1
    assert len(known_files(tmp_path)) == 2
    unread(monkeypatch)
    assert {prepared([path], tmp_path).train.folder for path in (one, other)} == folders


def test_fresh_files_lists_and_foreign_codecs_are_read_each_time(tmp_path):
    fresh = written(tmp_path / "fresh.tsv", pairs(100))
    old = aged(written(tmp_path / "old.tsv", pairs(100)))
    prepared([fresh], tmp_path)
    prepared(pairs(100), tmp_path)
    prepared([old], tmp_path, target=Counting(units="char"))
    assert known_files(tmp_path) == []


def test_what_is_damaged_or_gone_is_written_anew(tmp_path, monkeypatch):
    path = aged(written(tmp_path / "train.tsv", pairs(200)))
    first = prepared([path], tmp_path)
    (known,) = known_files(tmp_path)
    entry = known.parent
    codec, manifest = entry / "target.tokenizer.json", entry / "manifest.json"
    for damage in (
        lambda: known.write_text("{"),
        lambda: known.write_text('{"paths": []}'),
        lambda: codec.unlink(),
        lambda: codec.write_bytes(b"x" * codec.stat().st_size),
        lambda: manifest.unlink(),  # as entries of the first format had none
        lambda: manifest.write_text("[]"),
        lambda: manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "format": 1})),
        lambda: (entry / "train" / "target.bin").write_bytes(b"half"),
        lambda: shutil.rmtree(entry / "valid"),
        lambda: shutil.rmtree(entry),
    ):
        damage()
        again = prepared([path], tmp_path)
        assert again.report == first.report
        assert np.array_equal(again.train.lengths, first.train.lengths)
        with monkeypatch.context() as patch:
            unread(patch)
            assert prepared([path], tmp_path).report == first.report


def test_a_full_disk_is_no_reason_to_fail_once_the_corpora_are_written(tmp_path, monkeypatch):
    write = files.write

    def full(path, content):
        if b'"paths"' in content:
            raise OSError(28, "No space left on device")
        write(path, content)

    path = aged(written(tmp_path / "train.tsv", pairs(200)))
    monkeypatch.setattr(files, "write", full)
    assert len(prepared([path], tmp_path).train) == 180
    assert known_files(tmp_path) == []
    assert not list((tmp_path / "cache").rglob(".partial-*"))


def test_fitted_codecs_of_another_run_are_another_data_set(tmp_path, monkeypatch):
    path = aged(written(tmp_path / "train.tsv", pairs(200)))
    known = Text(units="char").fit(["source target 0123456789"])
    other = Text(units="char").fit(["abcdefghijklmnopqrstuvwxyz 0123456789"])
    given = {"source": known, "target": known, "fit": False}
    first = prepared([path], tmp_path, **given)
    second = prepared([path], tmp_path, **{**given, "target": other})
    assert first.train.folder != second.train.folder
    unread(monkeypatch)
    assert prepared([path], tmp_path, **given).train.folder == first.train.folder
