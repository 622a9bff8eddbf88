"""Pairs of words and sentences, and other pairs made of them."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from seqloom.studies.sources.files import data_set, write_file
from seqloom.studies.study import Splits

G2P = "CMUdict letters to phonemes; WER is 100 - exact, any listed pronunciation counts"
MULTI30K = "Multi30k English to German, test 2016"


def multi30k(folder: Path) -> Splits:
    def pair(split: str) -> list[str]:
        return [str(data_set("multi30k", f"{split}.{language}.gz")) for language in ("en", "de")]

    return Splits(pair("train"), pair("val"), pair("test_2016_flickr"))


def cmudict(folder: Path) -> Splits:
    """WORD<two spaces>PH PH PH as TSV."""
    made = []
    for split in ("train", "dev", "test"):
        with gzip.open(data_set("cmudict-g2p", f"cmudict-0.7b.{split}.gz"), "rt", encoding="ascii") as lines:
            text = "".join(line.replace("  ", "\t", 1) for line in lines)
        made.append(write_file(folder, f"cmudict-{split}.tsv", text))
    return Splits(*made)


def tenth_of_cmudict(folder: Path) -> Splits:
    """Every tenth training pair."""
    whole = cmudict(folder)
    lines = Path(whole.train[0]).read_text(encoding="ascii").splitlines(keepends=True)
    return replace(whole, train=write_file(folder, "cmudict-tenth.tsv", "".join(lines[::10])))


def swapped(source: Callable[[Path], Splits]) -> Callable[[Path], Splits]:
    """The same pairs with source and target exchanged."""
    return rewritten(source, "-swapped.tsv", lambda one, other: f"{other}\t{one}")


def targets(source: Callable[[Path], Splits]) -> Callable[[Path], Splits]:
    """The targets of pairs, for a language model."""
    return rewritten(source, ".txt", lambda one, other: other)


def rewritten(
    source: Callable[[Path], Splits], suffix: str, line: Callable[[str, str], str]
) -> Callable[[Path], Splits]:
    """Files of pairs as files of other lines, with the same stem."""

    def make(folder: Path) -> Splits:
        found, made = source(folder), []
        for (path,) in (found.train, found.valid or [], found.test):
            pairs = [each.split("\t") for each in Path(path).read_text(encoding="utf-8").splitlines()]
            text = "".join(line(*pair) + "\n" for pair in pairs)
            made.append(write_file(folder, Path(path).stem + suffix, text))
        return Splits(*made)

    return make


def scan(split: str) -> Callable[[Path], Splits]:
    """Commands and actions; training holds out a tenth for validation."""

    def find(folder: Path) -> Splits:
        made = []
        for part in ("train", "test"):
            with gzip.open(data_set("scan", f"tasks_{part}_{split}.txt.gz"), "rt", encoding="ascii") as lines:
                text = "".join(line.removeprefix("IN: ").replace(" OUT: ", "\t", 1) for line in lines)
            made.append(write_file(folder, f"scan-{split}-{part}.tsv", text))
        return Splits(made[0], None, made[1])

    return find


def sigmorphon(language: str) -> Callable[[Path], Splits]:
    """Words and their phonemes."""

    def find(folder: Path) -> Splits:
        files = (data_set("sigmorphon2020-g2p", f"{language}_{split}.tsv.gz") for split in ("train", "dev", "test"))
        return Splits(*([str(path)] for path in files))

    return find
