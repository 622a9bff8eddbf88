"""The sample of the Penn Treebank: sentences and their parse trees."""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path

from seqloom.metrics.trees import read_tree, words_of
from seqloom.studies.sources.files import data_set, write_file
from seqloom.studies.study import Splits


@cache
def treebank_trees(folder: Path) -> Splits:
    """The words of each tree, and the tree."""
    files = []
    for split in ("train", "dev", "test"):
        with gzip.open(data_set("treebank-sample", f"{split}.trees.gz"), "rt", encoding="ascii") as lines:
            text = "".join(f"{' '.join(words_of(read_tree(line)))}\t{line}" for line in lines)
        files.append(write_file(folder, f"trees-{split}.tsv", text))
    return Splits(*files)
