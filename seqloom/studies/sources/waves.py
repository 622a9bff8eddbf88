"""Recordings of single digits with the digit as their source."""

from __future__ import annotations

from pathlib import Path

from seqloom.studies.sources.files import write_file
from seqloom.studies.sources.series import single_digits
from seqloom.studies.study import Splits


def named_digits(folder: Path) -> Splits:
    """The same recordings as `single_digits`: "7", a tab, and the name of a recording of it."""
    splits, made = single_digits(folder), []
    for table in (splits.train, splits.valid or [], splits.test):
        path = Path(table[0])
        names = path.read_text(encoding="utf-8").splitlines()
        lines = [f"{Path(name).name[0]}\t{name}\n" for name in names]  # 7_jackson_12.wav
        made.append(write_file(path.parent, f"{path.stem}.tsv", "".join(lines)))
    return Splits(*made)
