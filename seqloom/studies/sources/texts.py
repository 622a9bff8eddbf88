"""Running texts."""

from __future__ import annotations

import gzip
from pathlib import Path

from seqloom.studies.sources.files import data_set, write_file
from seqloom.studies.study import Splits

SHAKESPEARE = "Tiny Shakespeare by characters, the last tenth, which also chose the checkpoint"


def tiny_shakespeare(folder: Path) -> Splits:
    """The first nine tenths of the characters for training, the rest for validation and test."""
    with gzip.open(data_set("tinyshakespeare", "input.txt.gz"), "rt", encoding="ascii") as file:
        text = file.read()
    cut = int(len(text) * 0.9)
    test = write_file(folder, "shakespeare-test.txt", text[cut:])
    return Splits(write_file(folder, "shakespeare-train.txt", text[:cut]), test, test)


def brown(folder: Path) -> Splits:
    """Sentences of the Brown corpus, an empty line between documents; every twentieth document for the test."""
    train, test = ([str(data_set("brown", f"{split}.txt.gz"))] for split in ("train", "valid"))
    return Splits(train, None, test)


def penn_treebank(folder: Path) -> Splits:
    train, valid, test = ([str(data_set("ptb", f"ptb.{split}.txt.gz"))] for split in ("train", "valid", "test"))
    return Splits(train, valid, test)
