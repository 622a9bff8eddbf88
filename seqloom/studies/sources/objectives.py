"""Data for studies of objectives: shuffled captions, and a source with two targets."""

from __future__ import annotations

import gzip
import random
import re
from collections.abc import Callable
from pathlib import Path

from seqloom.studies.sources.files import data_set, write_file
from seqloom.studies.study import Splits


def shuffled_captions(longest: int) -> Callable[[Path], Splits]:
    """English captions, words shuffled, and as they were. Validation and test have words of the training set only."""

    def make(folder: Path) -> Splits:
        known: set[str] = set()
        made = []
        for name, splits in {
            "train": ["train"],
            "valid": ["val"],
            "test": ["test_2016_flickr", "test_2017_flickr"],
        }.items():
            captions = [words for split in splits for words in read_captions(data_set("multi30k", f"{split}.en.gz"))]
            chosen = [words for words in captions if len(words) <= longest and (name == "train" or known >= {*words})]
            known |= {word for words in chosen for word in words}
            chance = random.Random(name)
            lines = [f"{' '.join(chance.sample(words, len(words)))}\t{' '.join(words)}\n" for words in chosen]
            made.append(write_file(folder, f"captions-{longest}-{name}.tsv", "".join(lines)))
        return Splits(*made)

    return make


def read_captions(path: Path) -> list[list[str]]:
    """The words of each caption, lower-cased and without punctuation."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        found = [re.findall(r"[\w'-]+", line.lower()) for line in lines]
    return [words for words in found if words]


def two_modes(folder: Path) -> Splits:
    """One source with two targets that share no token, in 60 % and 40 % of the examples."""
    lines = "".join(f"go\t{' '.join(letter * 6)}\n" for letter in "aaabb") * 20
    return Splits(*[write_file(folder, "two-modes.tsv", lines)] * 3)
