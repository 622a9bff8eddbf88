"""Measures of lip readers: what is missing is missing, and films of studies are written once."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np

from seqloom.data.generators.catalogue import make_examples, write_examples
from seqloom.studies.measures.lips import each_as_it_reads, with_each_input
from seqloom.studies.sources import lips as sources
from seqloom.studies.study import Splits
from seqloom.types import Example


class Reader:
    """Says which arrays it was given."""

    def __init__(self, parts: tuple[str, ...]):
        self.task = SimpleNamespace(source=SimpleNamespace(parts=parts))
        self.seen: list[list[str]] = []

    def examples(self, paths):
        return [Example(paths[0], "text")]

    def evaluate(self, examples, **options):
        given = examples[0].source
        self.seen.append(sorted(given) if isinstance(given, dict) else sorted(options))
        return {"cer": float(len(self.seen)), "examples": 1}


def test_a_reader_of_both_is_measured_on_both_on_sound_and_on_lips(tmp_path: Path):
    np.savez(tmp_path / "a.npz", frames=np.zeros((2, 3, 3), np.uint8), fps=25, sound=np.zeros(9), rate=8000)
    reader, data = Reader(("sound",)), Splits([], None, [str(tmp_path / "a.npz")])
    assert with_each_input(reader, data) == {"both_cer": 1.0, "sound_cer": 2.0, "lips_cer": 3.0}
    assert reader.seen == [["fps", "frames", "rate", "sound"], ["rate", "sound"], ["fps", "frames"]]
    assert each_as_it_reads(reader, data).keys() == {"both_cer", "sound_cer", "lips_cer"}


def test_a_reader_of_lips_is_measured_with_and_without_a_beam():
    reader = Reader(())
    assert each_as_it_reads(reader, Splits([], None, ["a.npz"])) == {"greedy_cer": 1.0, "cer": 2.0, "examples": 1}
    assert reader.seen == [["beam_size"], []]


def test_films_of_the_study_are_written_once_and_do_not_overlap(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(sources, "SPLITS", {"train": (0, 4), "valid": (4, 2), "test": (6, 2)})
    splits = sources.mouth_films(tmp_path)
    tables = [Path(path).read_text().splitlines() for path in (splits.train[0], splits.valid[0], splits.test[0])]
    assert [len(lines) for lines in tables] == [4, 2, 2]
    names = [line.split("\t")[0] for lines in tables for line in lines]
    assert len({*names}) == 8
    films = [np.load(tmp_path / "mouths" / name)["frames"].tobytes() for name in names]
    assert len({*films}) == 8
    before = Path(splits.train[0]).stat().st_mtime_ns
    assert sources.mouth_films(tmp_path) == splits
    assert Path(splits.train[0]).stat().st_mtime_ns == before
    write_examples(tmp_path / "again.tsv", make_examples("mouths", 2, 1, {"noise": 25.0, "snr": 0.0}, 6), 6)
    assert np.array_equal(
        np.load(tmp_path / "again" / "000006.npz")["frames"], np.load(tmp_path / "mouths" / names[6])["frames"]
    )
