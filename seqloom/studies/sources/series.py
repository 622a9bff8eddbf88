"""Series of vectors: piano rolls and recordings of single digits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from seqloom.studies.sources.files import data_set, write_file
from seqloom.studies.sources.spoken_digits import DIGIT_STRINGS, read_takes, write_wave
from seqloom.studies.study import Splits


def piano_rolls(name: str) -> Callable[[Path], Splits]:
    """One of the four collections of Boulanger-Lewandowski, Bengio & Vincent 2012, in its usual splits."""

    def find(folder: Path) -> Splits:
        files = ([str(data_set("polyphonic-music", f"{name}.{part}.jsonl.gz"))] for part in ("train", "valid", "test"))
        return Splits(*files)

    return find


def single_digits(folder: Path) -> Splits:
    """The recordings of the Free Spoken Digit Dataset, takes 0 to 4 for the test and 5 to 7 for validation."""
    home = folder / "single-digits"
    takes = None
    made = []
    for name, (_, numbers) in DIGIT_STRINGS.items():
        table = home / f"{name}.txt"
        if not table.exists():  # it is written after its recordings
            takes = takes or read_takes(data_set("fsdd", "recordings.tar.xz"))
            (home / name).mkdir(parents=True, exist_ok=True)
            lines = []
            for (speaker, digit, number), samples in sorted(takes.items()):
                if number in numbers:
                    path = f"{name}/{digit}_{speaker}_{number}.wav"
                    write_wave(home / path, samples)
                    lines.append(f"{path}\n")
            write_file(home, table.name, "".join(lines))
        made.append([str(table)])
    return Splits(*made)
