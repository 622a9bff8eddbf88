"""Texts and summaries as studies read them."""

import gzip
import json
from pathlib import Path

import pytest

from seqloom.studies.sources.summaries import ABSTRACT, ag_headlines, scitldr, words


def test_words_are_split_from_marks_and_cut() -> None:
    assert words('The U.S. "isn\'t" well-known, Ky.') == 'the u.s. " isn\'t " well-known , ky .'
    assert words("a b c d", 2) == "a b"


def test_items_and_headlines_are_pairs_of_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQLOOM_DATA", str(tmp_path))
    (tmp_path / "ag-news-headlines").mkdir()
    for split in ("train", "valid", "test"):
        with gzip.open(tmp_path / "ag-news-headlines" / f"{split}.tsv.gz", "wt") as file:
            file.write(f"{'Wool, ' * 30}\tA {split}!\n")
    found = ag_headlines(tmp_path / "made")
    assert Path(found.test[0]).read_text() == " ".join(["wool ,"] * 20) + "\ta test !\n"


def test_a_paper_has_a_pair_for_each_of_its_summaries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQLOOM_DATA", str(tmp_path))
    (tmp_path / "scitldr-a").mkdir()
    paper = {"source": ["We weave.", "x " * 200], "target": ["Weaving.", "Looms!"]}
    for split in ("train", "dev", "test"):
        with gzip.open(tmp_path / "scitldr-a" / f"{split}.jsonl.gz", "wt") as file:
            file.write(f"{json.dumps(paper)}\n")
    lines = Path(scitldr(tmp_path / "made").test[0]).read_text().splitlines()
    assert [line.split("\t")[1] for line in lines] == ["weaving .", "looms !"]
    source = lines[0].split("\t")[0].split()
    assert (source[:3], len(source)) == (["we", "weave", "."], ABSTRACT)
