"""Texts and their summaries, in words and punctuation marks."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

from seqloom.studies.sources.files import data_set, write_file
from seqloom.studies.study import Splits

WORDS = re.compile(r"(?:\w\.){2,}|\w+(?:['.-]\w+)*|[^\w\s]")  # u.s., isn't, well-known; other marks are words
HEADLINE_SOURCE = 40  # words of a description that are kept, of 31 in the mean
ABSTRACT = 150  # words of an abstract, of 160 in the mean


def ag_headlines(folder: Path) -> Splits:
    """News items and their headlines: 6,495, 567 and 532 pairs (AG's corpus)."""
    paths = []
    for split in ("train", "valid", "test"):
        with gzip.open(data_set("ag-news-headlines", f"{split}.tsv.gz"), "rt", encoding="utf-8") as lines:
            pairs = [line.rstrip("\n").split("\t") for line in lines]
        text = "".join(f"{words(item, HEADLINE_SOURCE)}\t{words(headline)}\n" for item, headline in pairs)
        paths.append(write_file(folder, f"headlines-{split}.tsv", text))
    return Splits(*paths)


def scitldr(folder: Path) -> Splits:
    """Abstracts of papers and summaries of one sentence, in training one each, else several: SciTLDR."""
    paths = []
    for split in ("train", "dev", "test"):
        with gzip.open(data_set("scitldr-a", f"{split}.jsonl.gz"), "rt", encoding="utf-8") as lines:
            papers = [json.loads(line) for line in lines]
        pairs = [
            (words(" ".join(paper["source"]), ABSTRACT), words(each)) for paper in papers for each in paper["target"]
        ]
        paths.append(write_file(folder, f"scitldr-{split}.tsv", "".join(f"{one}\t{other}\n" for one, other in pairs)))
    return Splits(*paths)


def words(text: str, most: int | None = None) -> str:
    """The first words of a text, in lower case."""
    return " ".join(WORDS.findall(text.lower())[:most])
