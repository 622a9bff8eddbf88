"""Damage to the data-set cache: a training on it ends with the weights and metrics of one on an undamaged cache."""

from __future__ import annotations

import json
import os
import random
import shutil
import string
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

import seqloom
from seqloom.train.display import Display
from tests.faults import command

SHORT, LONG = 3, 32  # by turns a bit flipped in each file, and one of DAMAGES
PAIRS, CHARACTERS = 3_000, 100  # more than a megabyte per side, so that files are remembered as intact
RECIPE = """
[task]
source = {type = "text", units = "char"}
target = {type = "text", units = "char"}
metrics = ["cer"]
[encoder]
type = "recurrent"
size = 8
[decoder]
type = "recurrent"
size = 8
[search]
type = "beam"
maximum_length = 10
[train]
tokens = 8000
steps = 4
log_every = 1
validate_every = 2
threads = 1
device = "cpu"
"""
CORPUS = ("target.bin", "lengths.bin", "offsets.bin", "source.bin", "meta.json")
FILES = [
    *(f"{part}/{name}" for name in CORPUS for part in ("train", "valid")),
    *("NOTE.json", "source.tokenizer.json", "target.tokenizer.json", "manifest.json", "verified.json"),
]
SILENT = None
DAMAGED, UNWRITABLE = "was damaged", "cannot be written"
Damage = Callable[[Path, random.Random], str | None]  # of an entry; returns what must be said


def attack(number: int, folder: Path) -> str | None:
    chance = random.Random(number)
    (folder / "recipe.toml").write_text(RECIPE)
    entry = fill_cache(folder, "pairs", chance)
    name = FILES[number // 2 % len(FILES)]
    damage: Damage = DAMAGES[number // 2 % len(DAMAGES)] if number % 2 else lambda *given: flip(name, *given)
    what = damage.__name__ if number % 2 else f"flip {name}"
    said = damage(entry, chance)
    words = ("train", "recipe.toml", "--data", "pairs.tsv", "--valid", "pairs-valid.tsv", "--out", "again")
    finished = command.seqloom(*words, folder=folder, seconds=60)
    if problem := finished.problem(exits=(0,)):
        return f"{what}: {problem}"
    for kind in (weights, metrics):
        if kind(folder / "again") != kind(folder / "run-pairs"):
            return f"{what}: other {kind.__name__}"
    heard = next((text for text in (DAMAGED, UNWRITABLE) if text in finished.err), SILENT)
    if heard != said:
        return f"{what}: expected to hear {said!r}, heard {heard!r}"
    if left := [path.name for path in folder.glob(".cache/.*")]:
        return f"{what}: {', '.join(left)} left in the cache"
    return None


def write_pairs(path: Path, count: int, chance: random.Random) -> None:
    sources = ("".join(chance.choices(string.ascii_letters, k=CHARACTERS)) for _ in range(count))
    path.write_text("".join(f"{source}\t{source[::-1]}\n" for source in sources))
    os.utime(path, (1e9, 1e9))


def fill_cache(folder: Path, name: str, chance: random.Random) -> Path:
    """Train in this process, which is quicker, with a cache as others leave it. Returns the new entry."""
    write_pairs(folder / f"{name}.tsv", PAIRS, chance)
    write_pairs(folder / f"{name}-valid.tsv", 20, chance)
    before, threads = {*folder.glob(".cache/*")}, torch.get_num_threads()
    with patch.dict(os.environ, SEQLOOM_CACHE=str(folder / ".cache")):
        seqloom.fit(
            folder / f"{name}.tsv",
            folder / "recipe.toml",
            valid=folder / f"{name}-valid.tsv",
            out=folder / f"run-{name}",
            display=Display.quiet(),
        )
    torch.set_num_threads(threads)
    (entry,) = {*folder.glob(".cache/*")} - before
    return entry


def weights(run: Path) -> bytes:
    return (run / "model.safetensors").read_bytes()


def metrics(run: Path) -> list[dict[str, Any]]:
    """All lines, but for time and speed."""
    lines = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    return [{name: value for name, value in line.items() if name not in ("seconds", "rate")} for line in lines]


def note_of(entry: Path) -> Path:
    """What is known of the files that an entry came from."""
    (note,) = (path for path in entry.glob("*.json") if len(path.stem) == 32)
    return note


def another(entry: Path, chance: random.Random) -> Path:
    """An entry of files of the same size."""
    return fill_cache(entry.parent.parent, "other", chance)


def swap(one: Path, other: Path) -> None:
    between = one.with_name("between")
    one.rename(between)
    other.rename(one)
    between.rename(other)


# -- damages


def flip(name: str, entry: Path, chance: random.Random) -> str | None:
    """One bit, and the time of modification set back."""
    path = note_of(entry) if name == "NOTE.json" else entry / name
    held, status = bytearray(path.read_bytes()), path.stat()
    held[chance.randrange(len(held))] ^= 1 << chance.randrange(8)
    path.write_bytes(held)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    return SILENT if name == "verified.json" else DAMAGED  # it only saves time


def fill_with_zeros(entry: Path, chance: random.Random) -> str | None:
    path = entry / chance.choice(FILES[:10])
    path.write_bytes(bytes(path.stat().st_size))
    return DAMAGED


def take_the_note_of_another(entry: Path, chance: random.Random) -> str | None:
    shutil.copy(note_of(another(entry, chance)), note_of(entry))
    return DAMAGED


def swap_entries(entry: Path, chance: random.Random) -> str | None:
    swap(entry, another(entry, chance))
    return DAMAGED


def swap_files_between_entries(entry: Path, chance: random.Random) -> str | None:
    swap(entry / "train" / "target.bin", another(entry, chance) / "train" / "target.bin")
    return DAMAGED


def swap_sides(entry: Path, chance: random.Random) -> str | None:
    swap(entry / "train" / "source.bin", entry / "train" / "target.bin")
    return DAMAGED


def truncate(entry: Path, chance: random.Random) -> str | None:
    path = entry / chance.choice(FILES[:10])
    os.truncate(path, chance.randrange(path.stat().st_size))
    return DAMAGED


def repeat_the_end(entry: Path, chance: random.Random) -> str | None:
    """Blocks of another place, as after a lost write."""
    path = entry / "train" / "target.bin"
    held = path.read_bytes()
    path.write_bytes(held[:-4096] + held[-8192:-4096])
    return DAMAGED


def delete_a_file(entry: Path, chance: random.Random) -> str | None:
    (entry / chance.choice(FILES[:10])).unlink()
    return DAMAGED


def delete_the_manifest(entry: Path, chance: random.Random) -> str | None:
    (entry / "manifest.json").unlink()
    return DAMAGED


def delete_the_entry(entry: Path, chance: random.Random) -> str | None:
    shutil.rmtree(entry)
    return SILENT


def forbid_to_read(entry: Path, chance: random.Random) -> str | None:
    (entry / chance.choice(FILES[:10])).chmod(0)
    return SILENT if os.geteuid() == 0 else DAMAGED  # root may read it


def forbid_to_write(entry: Path, chance: random.Random) -> str | None:
    entry.chmod(0o500)
    return SILENT


def link_to_endless_zeros(entry: Path, chance: random.Random) -> str | None:
    path = entry / chance.choice(FILES[:10])
    path.unlink()
    path.symlink_to("/dev/zero")
    return DAMAGED


def put_a_file_in_its_place(entry: Path, chance: random.Random) -> str | None:
    shutil.rmtree(entry)
    entry.write_bytes(b"")
    return DAMAGED


def leave_partial_folders(entry: Path, chance: random.Random) -> str | None:
    """As killed processes do: with a lock that nobody holds, or long ago."""
    for name in (".partial-one", ".spool-two", f".{entry.name}.old-three"):
        (entry.parent / name / "train").mkdir(parents=True)
        (entry.parent / name / "lock").touch()
    (entry.parent / ".partial-four").mkdir()
    os.utime(entry.parent / ".partial-four", (1e9, 1e9))
    shutil.rmtree(entry / "valid")
    return DAMAGED


def replace_the_cache_by_a_file(entry: Path, chance: random.Random) -> str | None:
    shutil.rmtree(entry.parent)
    entry.parent.write_bytes(b"")
    return UNWRITABLE


DAMAGES: list[Damage] = [
    *(take_the_note_of_another, fill_with_zeros, swap_entries, swap_files_between_entries, swap_sides, truncate),
    *(repeat_the_end, delete_a_file, delete_the_manifest, delete_the_entry, forbid_to_read, forbid_to_write),
    *(link_to_endless_zeros, put_a_file_in_its_place, leave_partial_folders, replace_the_cache_by_a_file),
]
