"""Recordings of single digits with the digit as their source, or as their target."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from seqloom.studies.sources.files import write_file
from seqloom.studies.sources.series import single_digits
from seqloom.studies.study import Splits


def named_digits(folder: Path) -> Splits:
    """The same recordings as `single_digits`: "7", a tab, and the name of a recording of it."""
    return written(folder, "named", lambda digit, name: f"{digit}\t{name}\n")


def heard_digits(folder: Path) -> Splits:
    """The other way round: the name of a recording, a tab, and the digit."""
    return written(folder, "heard", lambda digit, name: f"{name}\t{digit}\n")


def written(folder: Path, kind: str, line: Callable[[str, str], str]) -> Splits:
    splits, made = single_digits(folder), []
    for table in (splits.train, splits.valid or [], splits.test):
        path = Path(table[0])
        names = path.read_text(encoding="utf-8").splitlines()
        lines = [line(Path(name).name[0], name) for name in names]  # 7_jackson_12.wav
        made.append(write_file(path.parent, f"{kind}-{path.stem}.tsv", "".join(lines)))
    return Splits(*made)
