"""Pairs whose targets copy words of the source."""

from __future__ import annotations

import gzip
import hashlib
import re
from collections import Counter
from pathlib import Path

from seqloom.studies.sources.files import data_set, write_file
from seqloom.studies.study import Splits

COMMON = 2000  # the commonest words of French, which need not be copied
WORDS = {
    "en": r"\w+|'\w+|[^\w\s]",
    "fr": r"\w+'|\w+|[^\w\s]",
}  # an apostrophe belongs to the word before it in French, to the word after it in English


def tatoeba_copies(folder: Path) -> Splits:
    """English and French sentences, tokenised, every fourth or fifth with words to copy.

    Those are all pairs in which an uncommon word of the target is also in the source. To them are added, four times as
    many, pairs whose target has common words only. The hash of the English sentence decides on the split.
    """
    with gzip.open(data_set("tatoeba-eng-fra", "fra.txt.gz"), "rt", encoding="utf-8") as lines:
        given = [line.rstrip("\n").replace("’", "'").split("\t") for line in lines]
    pairs = [(re.findall(WORDS["en"], one), re.findall(WORDS["fr"], other)) for one, other in given]
    counts = Counter(word for _, target in pairs for word in target)
    common = set(sorted(counts, key=lambda word: (-counts[word], word))[:COMMON])
    copies = [pair for pair in pairs if not common.issuperset(pair[1]) and (set(pair[1]) - common) & set(pair[0])]
    others = [pair for pair in pairs if common.issuperset(pair[1])]
    splits: dict[str, list[str]] = {"train": [], "valid": [], "test": []}
    for source, target in copies + others[:: len(others) // (4 * len(copies))]:
        line = f"{' '.join(source)}\t{' '.join(target)}\n"
        tenth = int(hashlib.sha1(" ".join(source).encode()).hexdigest(), 16) % 10
        splits[{0: "test", 1: "valid"}.get(tenth, "train")].append(line)
    return Splits(*(write_file(folder, f"tatoeba-copies-{name}.tsv", "".join(each)) for name, each in splits.items()))


def django(folder: Path) -> Splits:
    """Descriptions in English and lines of Python, in the order of the files: 16,000, 1,000 and 1,805 pairs.

    The code is tokenised already. The English is tokenised at punctuation, but quoted strings only at spaces, as in the
    code.
    """
    sides = []
    for name in ("anno", "code"):
        with gzip.open(data_set("django-code", f"all.{name}.gz"), "rt", encoding="utf-8") as file:
            sides.append(file.read().splitlines())
    quoted = r"""(?<!\w)"(?:[^"\\]|\\.)*"|(?<!\w)'(?:[^'\\]|\\.)*'"""
    english = (" ".join(re.findall(rf"{quoted}|\w+|[^\w\s]", line)) for line in sides[0])
    lines = [f"{' '.join(one.split())}\t{' '.join(other.split())}\n" for one, other in zip(english, sides[1])]
    splits = {"train": lines[:16_000], "valid": lines[16_000:17_000], "test": lines[17_000:]}
    return Splits(*(write_file(folder, f"django-{name}.tsv", "".join(each)) for name, each in splits.items()))
