"""Multi30k for models of whole words: punctuation as words of its own."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

from seqloom.studies.sources.files import write_file
from seqloom.studies.sources.pairs import multi30k
from seqloom.studies.study import Splits

MARKS = ".,!?;:"  # that belong to the word before them


def words_of_multi30k(folder: Path) -> Splits:
    """The same pairs, their punctuation split off."""
    found = multi30k(folder)

    def split(paths: list[str]) -> list[str]:
        made = []
        for path in paths:
            with gzip.open(path, "rt", encoding="utf-8") as lines:
                text = "".join(f"{split_punctuation(line.rstrip())}\n" for line in lines)
            made += write_file(folder, f"multi30k-words-{Path(path).stem}", text)
        return made

    assert found.valid is not None
    return Splits(split(found.train), split(found.valid), split(found.test))


def split_punctuation(line: str) -> str:
    """A mark at the end of a word as a word of its own: "a hat, red." is "a hat , red ."."""
    return re.sub(rf"(?<=\S)([{MARKS}])(?=\s|$)", r" \1", line)


def join_punctuation(line: str) -> str:
    return re.sub(rf" ([{MARKS}])(?=\s|$)", r"\1", line)
