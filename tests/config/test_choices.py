"""The recipe chosen for each shared data set. Skipped where they are not there ($SEQLOOM_DATA)."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

import pytest

from seqloom.config.automatic import recipe_for
from seqloom.data.survey import survey
from seqloom.types import Example

DATA = os.environ.get("SEQLOOM_DATA")
pytestmark = pytest.mark.skipif(not DATA, reason="needs the shared data sets: set SEQLOOM_DATA")
Rows = Iterable[tuple[str, str]]


def lines(name: str) -> list[str]:
    with gzip.open(Path(DATA or "") / f"{name}.gz", "rt", encoding="utf-8") as file:
        return [line.rstrip("\n") for line in file]


def aligned(*names: str) -> Rows:
    return zip(*map(lines, names))


def columns(name: str, source: int = 0, target: int = 1, separator: str = "\t") -> Rows:
    split = (line.split(separator) for line in lines(name))
    return ((each[source], each[target]) for each in split)


def labelled(name: str) -> Rows:
    """Lines of a label and a sentence."""
    return ((sentence, label) for label, _, sentence in (line.partition(" ") for line in lines(name)))


def tagged(name: str) -> Rows:
    """One word and its tags per line, the last tag counts; an empty line after each sentence."""
    for real, rows in groupby(map(str.split, lines(name)), bool):
        if real:
            words = list(rows)
            yield " ".join(each[0] for each in words), " ".join(each[-1] for each in words)


def inflected(name: str) -> Rows:
    return ((f"{lemma} {tags}", form) for lemma, form, tags in (line.split("\t") for line in lines(name)))


def commands(name: str) -> Rows:
    split = (line.removeprefix("IN: ").split(" OUT: ") for line in lines(name))
    return ((command, actions) for command, actions in split)


CHOICES = [
    ("labels", labelled, "sentence-classification/TREC.train.all"),
    ("labels", labelled, "sentence-classification/stsa.binary.train"),
    ("labels", labelled, "sentence-classification/stsa.fine.train"),
    ("labels", columns, ("slu-atis-snips/atis.train.tsv", 1, 0)),
    ("labels", columns, ("slu-atis-snips/snips.train.tsv", 1, 0)),
    ("labels", columns, ("rte123/rte1_dev.tsv", 4, 1)),
    ("tags", columns, ("slu-atis-snips/atis.train.tsv", 1, 2)),
    ("tags", columns, ("slu-atis-snips/snips.train.tsv", 1, 2)),
    ("tags", tagged, "conll2000-chunking/train.txt"),
    ("tags", tagged, "wnut17-ner/train.conll"),
    ("django", aligned, ("django-code/all.anno", "django-code/all.code")),
    ("g2p-lstm", columns, ("cmudict-g2p/cmudict-0.7b.train", 0, 1, "  ")),
    ("g2p-lstm", columns, "sigmorphon2020-g2p/fre_train.tsv"),
    ("g2p-lstm", columns, "sigmorphon2020-g2p/kor_train.tsv"),
    ("dates", inflected, "sigmorphon2018-inflection/english-train-medium"),
    ("dates", inflected, "sigmorphon2018-inflection/turkish-train-high"),
    ("multi30k-transformer", aligned, ("multi30k/train.en", "multi30k/train.de")),
    ("multi30k-transformer", aligned, ("multi30k/train.fr", "multi30k/train.en")),
    ("multi30k-transformer", aligned, ("tanaka-enja-50k/train.en", "tanaka-enja-50k/train.ja")),
    ("multi30k-transformer", columns, "tatoeba-eng-fra/fra.txt"),
    ("multi30k-lstm", columns, "ag-news-headlines/train.tsv"),
    ("multi30k-lstm", commands, "scan/tasks_train_simple.txt"),
]


@pytest.mark.parametrize(("recipe", "read", "name"), CHOICES)
def test_the_choice_for_a_known_data_set(recipe, read, name):
    rows = read(name) if isinstance(name, str) else read(*name)
    choice = recipe_for(survey(Example(source.strip(), target.strip()) for source, target in rows))
    assert choice.recipe == recipe, choice.saw
