"""Files as a newcomer has them: questions and their kinds, opinions, tagged sentences, short translations."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

from seqloom.studies.sources.files import data_set, write_file
from seqloom.studies.study import Splits

LONGEST = 10  # words of a sentence of Tatoeba
PAIRS = 20_000


def labelled(name: str, splits: tuple[str, ...]) -> Callable[[Path], Splits]:
    """Sentences with a label; the files have the label first. Without a validation set, training holds some out."""

    def make(folder: Path) -> Splits:
        made = {}
        for split in splits:
            path = data_set("sentence-classification", f"{name}.{split}.gz")
            with gzip.open(path, "rt", encoding="utf-8") as lines:
                pairs = [line.strip().partition(" ") for line in lines]
            text = "".join(f"{sentence}\t{label}\n" for label, _, sentence in pairs)
            made[split.partition(".")[0]] = write_file(folder, f"{name.lower()}-{split}.tsv", text)
        return Splits(made["train"], made.get("dev"), made["test"])

    return make


def tagged(folder_name: str, files: dict[str, str]) -> Callable[[Path], Splits]:
    """Sentences and their tags, from files of one word per line with its tag last, a blank line between sentences."""

    def make(folder: Path) -> Splits:
        made = {}
        for split, file in files.items():
            text = "".join(f"{words}\t{tags}\n" for words, tags in sentences(data_set(folder_name, file)))
            made[split] = write_file(folder, f"{folder_name}-{split}.tsv", text)
        return Splits(made["train"], made.get("valid"), made["test"])

    return make


def sentences(path: Path) -> Iterator[tuple[str, str]]:
    rows: list[list[str]] = []
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in [*lines, ""]:
            if cells := line.split():
                rows.append([cells[0], cells[-1]])
            elif rows:
                words, tags = zip(*rows)
                yield " ".join(words), " ".join(tags)
                rows = []


def short_tatoeba(folder: Path) -> Splits:
    """20,000 English sentences with one French translation each, at most ten words long, and 1,000 to test with."""
    with gzip.open(data_set("tatoeba-eng-fra", "fra.txt.gz"), "rt", encoding="utf-8") as lines:
        pairs = [line.rstrip("\n").split("\t")[:2] for line in lines]
    short = {one: other for one, other in pairs if max(len(one.split()), len(other.split())) <= LONGEST}
    chosen = sorted(short)
    Random(1).shuffle(chosen)
    made = []
    for name, part in (("train", chosen[:PAIRS]), ("test", chosen[PAIRS : PAIRS + 1000])):
        text = "".join(f"{one}\t{short[one]}\n" for one in part)
        made.append(write_file(folder, f"tatoeba-short-{name}.tsv", text))
    return Splits(made[0], None, made[1])
