"""Dialogues: DailyDialog."""

from __future__ import annotations

import gzip
from pathlib import Path

from seqloom.studies.sources.files import data_set, write_file
from seqloom.studies.study import Splits


def dailydialog(folder: Path) -> Splits:
    """A dialogue per line. One that is in another split too stays in the test set only, or in the validation set."""
    seen: set[str] = set()
    files: dict[str, list[str]] = {}
    for part in ("test", "validation", "train"):
        with gzip.open(data_set("dailydialog", f"dialogues_{part}.txt.gz"), "rt", encoding="utf-8") as file:
            lines = [line.strip() for line in file]
        kept = [line for line in lines if same(line) not in seen]
        seen |= {same(line) for line in lines}
        files[part] = write_file(folder, f"dailydialog-{part}.txt", "".join(f"{line}\n" for line in kept))
    return Splits(files["train"], files["validation"], files["test"])


def same(line: str) -> str:
    """What two copies of a dialogue have in common, whatever the spaces and the case."""
    return "".join(line.split()).lower()
