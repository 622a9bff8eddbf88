"""Damage in the cache: whatever happens to its files, the data is that of its origin, and a line says so."""

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from seqloom.data import checksums, corpus
from seqloom.data.cache import Cache
from seqloom.data.checksums import read_sealed, seal, stamp, write_sealed
from seqloom.data.codecs.text import Text
from seqloom.errors import SeqloomError
from seqloom.storage import files
from tests.data.pairs import pairs, prepared, written
from tests.data.test_cache import aged, known_files, unread


def content(data):
    """All that a training reads."""
    rows = [[None if side is None else side.tolist() for side in each[i]] for each in corpora(data) for i in range(20)]
    lengths = [each.lengths.tolist() for each in corpora(data)]
    return rows, lengths, data.valid_examples, data.report


def corpora(data):
    return data.train, data.valid


def flip(path, place=0.5):
    """One bit of another value, with the time of modification that it had."""
    held, status = bytearray(path.read_bytes()), path.stat()
    held[int(place * (len(held) - 1))] ^= 1
    path.write_bytes(held)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def swap(one, other):
    one.rename(one.with_name("between"))
    other.rename(one)
    one.with_name("between").rename(other)


@pytest.fixture
def data(tmp_path):
    return aged(written(tmp_path / "train.tsv", pairs(300)))


@pytest.fixture
def other(tmp_path):
    """Equally many pairs, equally long."""
    return aged(written(tmp_path / "other.tsv", [(source, target[::-1]) for source, target in pairs(300)]))


@pytest.fixture
def entry(tmp_path, data):
    prepared([data], tmp_path)
    return known_files(tmp_path)[0].parent


FILES = [
    *(f"{part}/{name}" for part in ("train", "valid") for name in ("source.bin", "target.bin", "lengths.bin")),
    *("train/offsets.bin", "valid/meta.json", "source.tokenizer.json", "target.tokenizer.json", "manifest.json"),
]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("place", [0.0, 0.7])
@pytest.mark.parametrize("large", [True, False])
def test_a_flipped_bit_is_found_and_mended(tmp_path, monkeypatch, data, entry, name, place, large):
    monkeypatch.setattr(checksums, "SMALL", 0 if large else 1 << 20)
    whole = content(prepared([data], tmp_path))  # remembers large files as intact
    assert (entry / "verified.json").exists() == large
    flip(entry / name, place)
    again = prepared([data], tmp_path)
    assert content(again) == whole
    assert again.notes == [f"The cache of {data} was damaged ({name}): made again."]
    assert prepared([data], tmp_path).notes == []


@pytest.mark.parametrize("place", [0.0, 0.2, 0.9, 1.0])
def test_a_damaged_note_on_files_is_found_and_mended(tmp_path, monkeypatch, data, entry, place):
    whole = content(prepared([data], tmp_path))
    flip(note := known_files(tmp_path)[0], place)
    again = prepared([data], tmp_path)
    assert content(again) == whole
    assert again.notes == [f"The cache of {data} was damaged ({note.name}): made again."]
    unread(monkeypatch)
    assert content(prepared([data], tmp_path)) == whole


SOME = ["train/target.bin", "valid/lengths.bin", "target.tokenizer.json", "manifest.json", "verified.json"]


@pytest.mark.parametrize("name", SOME)
@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(bytes(path.stat().st_size)),
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        lambda path: path.write_bytes(b""),
        lambda path: path.unlink(),
        lambda path: path.unlink() or path.symlink_to("/dev/zero"),
        lambda path: path.unlink() or path.mkdir(),
        lambda path: path.unlink() or os.mkfifo(path),
    ],
    ids=["zeros", "cut", "empty", "gone", "endless", "folder", "pipe"],
)
def test_any_other_damage_is_found_and_mended(tmp_path, monkeypatch, data, entry, name, damage):
    monkeypatch.setattr(checksums, "SMALL", 0)
    whole = content(prepared([data], tmp_path))
    damage(entry / name)
    again = prepared([data], tmp_path)
    assert content(again) == whole
    assert bool(again.notes) == (name != "verified.json")
    assert prepared([data], tmp_path).notes == []


@pytest.mark.parametrize("name", [*FILES, ""])
def test_files_of_another_entry_are_not_taken(tmp_path, data, other, entry, name):
    whole, second = content(prepared([data], tmp_path)), prepared([other], tmp_path)
    theirs, second = second.train.folder.parent, content(second)
    assert whole != second
    swap(entry / name, theirs / name)
    assert content(prepared([data], tmp_path)) == whole
    assert content(prepared([other], tmp_path)) == second


def test_a_note_in_another_entry_or_under_another_name_is_not_taken(tmp_path, data, other, entry):
    whole, second = content(prepared([data], tmp_path)), content(prepared([other], tmp_path))
    ours, theirs = sorted(known_files(tmp_path), key=lambda path: path.parent != entry)
    shutil.copy(theirs, entry / theirs.name)
    shutil.copy(theirs, theirs.with_name(ours.name))
    ours.unlink()
    assert content(prepared([data], tmp_path)) == whole
    assert content(prepared([other], tmp_path)) == second


@pytest.mark.parametrize("link", [True, False])
def test_an_entry_that_is_no_folder_makes_way(tmp_path, data, entry, link):
    whole = content(prepared([data], tmp_path))
    shutil.rmtree(entry)
    entry.symlink_to(tmp_path / "nowhere") if link else entry.write_bytes(b"")
    assert content(prepared([data], tmp_path)) == whole
    assert content(prepared([data], tmp_path)) == whole
    assert sorted(path.name for path in (tmp_path / "cache").iterdir()) == [entry.name]


def test_a_data_file_replaced_by_one_of_the_same_size_and_time_is_read(tmp_path, data, other):
    prepared([data], tmp_path)
    second, status = content(prepared([other], tmp_path)), data.stat()
    data.write_bytes(other.read_bytes())
    os.utime(data, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert data.stat().st_size == status.st_size
    assert content(prepared([data], tmp_path)) == second


# -- what need not be read again


@pytest.fixture
def hashed(monkeypatch):
    """The files that were hashed, with their folders."""
    names, checksum = [], checksums.checksum

    def counting(path):
        names.append(f"{path.parent.name}/{path.name}")
        return checksum(path)

    monkeypatch.setattr(checksums, "checksum", counting)
    return names


def test_large_files_are_hashed_once_and_small_ones_each_time(tmp_path, monkeypatch, data, hashed):
    monkeypatch.setattr(checksums, "SMALL", 2000)  # between the corpora to train on and to validate with
    path = prepared([data], tmp_path).train.folder / "target.bin"
    assert hashed.count("train/target.bin") == hashed.count("valid/target.bin") == 1
    prepared([data], tmp_path)
    assert hashed.count("train/target.bin") == 1
    assert hashed.count("valid/target.bin") == 2
    os.utime(path)
    for _ in range(2):
        prepared([data], tmp_path)
    assert hashed.count("train/target.bin") == 2


@pytest.mark.parametrize("age", [checksums.DUE + 1, -100.0])
def test_decay_below_the_file_system_is_found_when_hashing_is_due(tmp_path, monkeypatch, data, age):
    """It changes no time, so the damaged file is made to look like the one that was verified."""
    monkeypatch.setattr(checksums, "SMALL", 0)
    whole = prepared([data], tmp_path)
    entry, whole = whole.train.folder.parent, content(whole)
    flip(entry / "train" / "target.bin")
    verified = read_sealed(entry / "verified.json")
    verified["train/target.bin"][1] = stamp((entry / "train" / "target.bin").stat())
    verified = {name: [when - age, known] for name, (when, known) in verified.items()}
    write_sealed(entry / "verified.json", verified)
    again = prepared([data], tmp_path)
    assert again.notes
    assert content(again) == whole


def test_what_is_sealed_is_read_back_and_nothing_else(tmp_path):
    value = {"text": '"}\n\ud800 %s', "number": [0.1, None, 2**70]}
    (tmp_path / "x").write_bytes(seal(value))
    assert read_sealed(tmp_path / "x") == value
    for damaged in (b"", b"{}", seal(value)[:-1], seal(value) + b"\n", seal(value).replace(b"0.1", b"0.2")):
        (tmp_path / "x").write_bytes(damaged)
        with pytest.raises(ValueError):
            read_sealed(tmp_path / "x")


# -- writing


def test_all_is_forced_to_the_disk_before_the_entry_gets_its_name(tmp_path, monkeypatch, data):
    synced, order = set(), []
    fsync, rename = os.fsync, os.rename

    def sync(handle):
        synced.add(os.fstat(handle).st_ino)
        order.append(os.readlink(f"/proc/self/fd/{handle}"))
        fsync(handle)

    def publish(before, after):
        if len(os.path.basename(after)) == 32:
            inside = [before, *(path for path in before.rglob("*") if path.name not in ("lock", "verified.json"))]
            assert {path.name for path in inside if path.stat().st_ino not in synced} == set()
            order.append("published")
        rename(before, after)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "rename", publish)
    prepared([data], tmp_path)
    assert str(tmp_path / "cache") in order[order.index("published") :]


def full(monkeypatch, part, name, times):
    """A disk that is full for the first calls of a function."""
    calls, function = [], getattr(part, name)

    def fail(*arguments):
        calls.append(arguments)
        if len(calls) <= times:
            raise OSError(28, "No space left on device")
        return function(*arguments)

    monkeypatch.setattr(part, name, fail)


@pytest.mark.parametrize(("part", "name"), [(corpus._SideWriter, "append"), (files, "write"), (os, "fsync")])
def test_a_full_disk_costs_the_cache_and_not_the_training(tmp_path, monkeypatch, data, part, name):
    whole = content(prepared([data], tmp_path / "elsewhere"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    full(monkeypatch, part, name, 1)
    again = prepared([data], tmp_path)
    assert content(again) == whole
    (note,) = again.notes
    assert note == (
        f"The cache {tmp_path / 'cache'} cannot be written (No space left on device): "
        "the data will be encoded again in the next run."
    )
    assert [*(tmp_path / "cache").iterdir(), *(tmp_path / "temporary").iterdir()] == []
    assert prepared([data], tmp_path).notes == []


def test_no_room_anywhere_is_one_line(tmp_path, monkeypatch, data):
    full(monkeypatch, corpus._SideWriter, "append", 2)
    with pytest.raises(SeqloomError, match=r"neither to the cache .*No space left on device.* SEQLOOM_CACHE"):
        prepared([data], tmp_path)


def test_a_bad_line_is_no_matter_of_the_cache(tmp_path, monkeypatch):
    def fail(*_):
        raise SeqloomError("line 7: unreadable")

    monkeypatch.setattr(corpus._SideWriter, "append", fail)
    with pytest.raises(SeqloomError, match="line 7: unreadable"):
        prepared(pairs(100), tmp_path)


def test_a_cache_that_is_no_folder_is_done_without(tmp_path, data):
    whole = content(prepared([data], tmp_path / "elsewhere"))
    (tmp_path / "cache").write_bytes(b"")
    for _ in range(2):
        again = prepared([data], tmp_path)
        assert content(again) == whole
        assert len(again.notes) == 1


# -- what processes that were killed left

KILLED = """
import os, signal, sys
from pathlib import Path
from seqloom.data.cache import Cache

def fill(folder):
    (folder / "half").write_bytes(b"half")
    print(folder.name, flush=True)
    if sys.argv[2] == "wait":
        sys.stdin.read()
    os.kill(os.getpid(), signal.SIGKILL)

Cache(Path(sys.argv[1])).write("0" * 32, fill)
"""


def writer(folder, what):
    words = [sys.executable, "-c", KILLED, str(folder), what]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_what_a_killed_process_left_is_removed_and_what_a_living_one_writes_is_not(tmp_path, data):
    cache = tmp_path / "cache"
    with writer(cache, "die") as dead:
        left = cache / dead.communicate()[0].strip()
    assert (left / "half").exists()
    with writer(cache, "wait") as living:
        kept = cache / living.stdout.readline().strip()
        assert not left.exists()
        prepared([data], tmp_path)
        Cache(cache).clear()
        assert (kept / "half").exists()
        living.stdin.close()
    Cache(cache).clear()
    assert list(cache.iterdir()) == []


def test_a_folder_without_a_lock_is_removed_when_it_is_old(tmp_path):
    cache = Cache(tmp_path)
    for name in (".partial-new", ".partial-old", ".spool-old", ".gone-old", f".{'0' * 32}.old-old", ".own", "bench"):
        (tmp_path / name).mkdir()
        if name.endswith("old"):
            os.utime(tmp_path / name, (1, 1))
    cache.clear()
    assert {path.name for path in tmp_path.iterdir()} == {".partial-new", ".own", "bench"}


# -- the limit


def used(entry, when):
    os.utime(entry / "manifest.json", (when, when))


def three(tmp_path):
    """Entries last used in the years 1970, 1971 and 1972."""
    made = []
    for number in range(3):
        path = aged(written(tmp_path / f"{number}.tsv", pairs(200 + number)))
        made.append(prepared([path], tmp_path).train.folder.parent)
        used(made[-1], 1 + 366 * 86_400 * number)
    return made


def test_the_least_recently_used_entries_make_room(tmp_path, monkeypatch):
    first, second, third = three(tmp_path)
    prepared([tmp_path / "0.tsv"], tmp_path)  # used now
    limit = 3.5 * Cache(tmp_path / "cache").entries()[0].size
    monkeypatch.setenv("SEQLOOM_CACHE_LIMIT", str(limit))
    data = prepared(pairs(210), tmp_path, source=Text(units="char"))
    assert [each.exists() for each in (first, second, third)] == [True, False, True]
    assert len(data.notes) == 1
    assert data.notes[0].startswith("Removed 1 entry of the cache")


def test_an_entry_in_use_stays_until_it_is_not(tmp_path, monkeypatch):
    first, second, third = three(tmp_path)
    held = prepared([tmp_path / "0.tsv"], tmp_path)
    used(first, 1)
    monkeypatch.setenv("SEQLOOM_CACHE_LIMIT", "0")
    newest = prepared(pairs(210), tmp_path)
    assert [each.exists() for each in (first, second, third)] == [True, False, False]
    assert {entry.folder for entry in Cache(tmp_path / "cache").entries()} == {first, newest.train.folder.parent}
    del held, newest
    assert len(Cache(tmp_path / "cache").clear()) == 2
    assert list((tmp_path / "cache").iterdir()) == []


def test_maps_outlive_their_entry(tmp_path, data):
    data = prepared([data], tmp_path)
    wanted = content(data)
    shutil.rmtree(tmp_path / "cache")
    assert content(data) == wanted


def test_entries_are_listed_with_their_files_and_cleared_by_their_last_use(tmp_path):
    first, second, third = three(tmp_path)
    cache = Cache(tmp_path / "cache")
    assert [entry.folder for entry in cache.entries()] == [third, second, first]
    assert cache.entries()[0].paths() == [str(tmp_path / "2.tsv")]
    assert cache.entries()[0].size == sum(path.stat().st_size for path in third.rglob("*") if path.is_file())
    assert [entry.folder for entry in cache.clear(before=1000.0)] == [first]
    assert np.array_equal([entry.folder for entry in cache.clear()], [third, second])


@pytest.mark.parametrize(("text", "size"), [("20 GB", 2e10), ("1.5tb", 1.5e12), ("300", 300), (" 7 KB ", 7000)])
def test_a_limit_is_a_size(monkeypatch, tmp_path, text, size):
    monkeypatch.setenv("SEQLOOM_CACHE_LIMIT", text)
    assert Cache(tmp_path).limit == pytest.approx(size)


@pytest.mark.parametrize("text", ["much", "-1 GB", "1e3 GB", "20 gigabytes", "nan", "9" * 5000])
def test_any_other_limit_is_a_mistake(monkeypatch, tmp_path, text):
    monkeypatch.setenv("SEQLOOM_CACHE_LIMIT", text)
    with pytest.raises(SeqloomError, match="expected a size, such as 20 GB"):
        Cache(tmp_path)
