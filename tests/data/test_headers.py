"""Headers: probable ones are recognised, and data is not taken for one."""

from __future__ import annotations

import gzip
import os
from itertools import islice
from pathlib import Path

import pytest

from seqloom.data.generators.catalogue import make_examples
from seqloom.data.headers import likely_columns, looks_like_header
from seqloom.data.layout import Layout

SENTENCES = [[f"a sentence of many words {number}", "yes no"[number % 2 * 4 :][:3].strip()] for number in range(9)]
DATA = Path(os.environ.get("SEQLOOM_DATA", "/nowhere"))
WITH_HEADER = ("MANIFEST", "rte")  # of the data sets at hand


@pytest.mark.parametrize(
    ("rows", "header"),
    [
        ([["source", "target"]], True),
        ([["English", "German"], ["dog", "Hund"]], True),
        ([["id", "text", "label"], ["1", "a", "b"]], True),
        ([["comment_body", "toxic"], *SENTENCES], True),
        ([["comment_body", "toxic"], ["a", "1"], ["b", "0"]], True),
        ([["dog", "Hund"], ["cat", "Katze"], ["question", "Frage"]], False),
        ([["question", "answer"], ["answer", "reply"], ["dog", "answer"]], False),  # "answer" comes again
        ([["answer", "answers"], ["dog", "dogs"]], False),
        ([["text", "text"]], False),
        ([["a", "AH"], *([word, "AE B AH K AH S"] for word in ("abacus", "abandon", "abbey", "able", "abort"))], False),
        ([["Terrible", "no"], *SENTENCES], False),  # "no" is a label that comes again
        ([["one", "1"], ["two", "2"], ["three", "3"]], False),
        ([["12", "21"], ["13", "31"]], False),
        ([["Go.", "Va !"], *SENTENCES], False),
        ([[""]], False),
        ([], False),
    ],
)
def test_a_header_is_told_from_data(rows: list[list[str]], header: bool) -> None:
    assert looks_like_header(rows) is header


@pytest.mark.parametrize("name", ["adding", "addition", "cipher", "counting", "dates", "hull", "parity", "whereabouts"])
def test_generated_data_has_no_header(name: str) -> None:
    rows = [[str(each.source), str(each.target)] for each in make_examples(name, 200, 1, {})]
    assert not looks_like_header(rows)


@pytest.mark.skipif(not DATA.is_dir(), reason="needs the data sets of $SEQLOOM_DATA")
def test_no_data_set_at_hand_is_taken_for_one_with_a_header() -> None:
    seen = 0
    for path in sorted(DATA.rglob("*.tsv*")):
        with gzip.open(path, "rt") if path.suffix == ".gz" else open(path) as file:
            rows = [line.rstrip("\n").split("\t") for line in islice(file, 200)]
        assert looks_like_header(rows) is path.name.startswith(WITH_HEADER), path
        seen += 1
    assert seen


def test_likely_columns_are_suggested() -> None:
    assert likely_columns(["id", "label", "text"], 2) == ["text", "label"]
    assert likely_columns(["before", "after"], 2) == ["before", "after"]
    assert likely_columns(["id", "body"], 1) == ["body"]


def test_other_columns_make_void_what_was_known_of_the_header() -> None:
    known = Layout(("text", "label"), header=True, quotes=False)
    assert known.changed([1, 2]) == Layout((1, 2), None, False)
    assert known.changed(header=False) == Layout(("text", "label"), False, False)
    assert known.changed() == known
