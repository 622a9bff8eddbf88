"""Measures of models of sound."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from seqloom.errors import SeqloomError
from seqloom.studies.measures import waves
from seqloom.studies.measures.waves import order_two, recogniser, understood
from seqloom.studies.sources import waves as sources
from seqloom.studies.study import Splits


def test_counts_of_two_samples_before_are_those_of_the_definition():
    train, test = [np.array([4, 5, 6, 5, 4, 5, 6])], [np.array([4, 5, 6])]
    # 4 after nothing, 5 after 4 alone, 6 after 4 5: in training once, once and twice
    size, weight = 8, waves.WEIGHT
    none = (np.array([0, 0, 0, 0, 2, 3, 2, 0]) + 1) / (7 + size)

    def one(before: int, token: int, count: int, total: int) -> float:
        return (count + weight * none[token]) / (total + weight)

    first = (1 + weight * one(0, 4, 1, 1)) / (1 + weight)
    second = (1 + weight * one(4, 5, 2, 2)) / (1 + weight)
    third = (2 + weight * one(5, 6, 2, 3)) / (2 + weight)
    assert order_two(train, test, size) == pytest.approx(-np.log2([first, second, third]).mean())


class Speaker:
    """Says the right digit as a constant, but for 7."""

    def generate(self, count, source, **options):
        return [np.full(4, 0 if source == "7" else int(source))] * count


class Listener:
    def predict(self, sounds):
        return [str(sound[0]) for sound, rate in sounds]


def test_digits_that_are_understood_are_counted():
    assert understood(Speaker(), Listener()) == pytest.approx(90)


def test_without_the_run_that_listens_it_is_asked_for(tmp_path: Path):
    speaker = SimpleNamespace(system=SimpleNamespace(path=tmp_path / "digit"))
    with pytest.raises(SeqloomError, match="--only recogniser"):
        recogniser(speaker)


def test_digits_are_named_and_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    names = {"train": "train/7_ada_1.wav", "valid": "valid/3_bo_5.wav", "test": "test/0_cy_0.wav"}
    for split, name in names.items():
        (tmp_path / f"{split}.txt").write_text(f"{name}\n")
    splits = Splits(*([str(tmp_path / f"{split}.txt")] for split in names))
    monkeypatch.setattr(sources, "single_digits", lambda folder: splits)
    (named,), (heard,) = sources.named_digits(tmp_path).train, sources.heard_digits(tmp_path).test
    assert Path(named).read_text() == "7\ttrain/7_ada_1.wav\n"
    assert Path(heard).read_text() == "test/0_cy_0.wav\t0\n"
