"""Baselines as rows of a study: rules that are measured as trained models are."""

import json
from pathlib import Path
from typing import Any

import pytest

from seqloom.studies.baseline import Baseline, first_words
from seqloom.studies.page import write_page
from seqloom.studies.sources.files import write_file
from seqloom.studies.study import Splits, Study, Variant

TASK = [
    'task.target={type="text", units="word"}',
    'task.source={type="text", units="word", lowercase=true}',
    'task.metrics=["exact", "copy_recall"]',
]


def headlines(folder: Path) -> Splits:
    train = write_file(folder, "train.tsv", "a b\tx\nc d\tx\ne f\ty\n")
    return Splits(train, None, write_file(folder, "test.tsv", "A b c\tA  b\nd e f\tx\n"))


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQLOOM_CACHE", str(tmp_path / "cache"))


def commonest(training: Any) -> Any:
    targets = [example.target for example in training]
    return lambda source: max(targets, key=targets.count)


def test_a_baseline_is_a_row_of_a_study_and_nothing_is_trained(tmp_path: Path) -> None:
    study = Study(
        "two rules",
        "g2p-small",
        headlines,
        variants={
            "first words": Variant(baseline=first_words(2)),
            "commonest target": Variant(baseline=commonest),
        },
        seeds=(1, 2),
    )
    record = study.reproduce("rules", tmp_path, TASK)
    found = {(row["variant"], row["seed"]): row for row in record["rows"]}
    assert len(found) == 4
    for seed in (1, 2):  # "A b" is the reference "A  b" written with one space; "x" is the second reference
        assert found["first words", seed]["measured"] == {"exact": 50.0, "copy_recall": 100.0}
        assert found["commonest target", seed]["measured"] == {"exact": 50.0, "copy_recall": 0.0}
    assert found["first words", 1]["parameters"] == 0
    assert study.folders("rules", tmp_path) == []
    assert not (tmp_path / "runs" / "rules").exists()
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "rules.json").write_text(json.dumps(record))
    write_page(tmp_path)
    assert "none: a baseline |" in (tmp_path / "docs" / "results.md").read_text()


def test_a_baseline_writes_as_the_codec_of_the_target_would() -> None:
    lowercase = 'task.target={type="text", units="word", lowercase=true}'
    rule = Baseline(first_words(2), "g2p-small", [*TASK, lowercase], [("a", "b")])
    assert rule.predict(["The  Old loom"]) == ["the old"]
    assert rule.evaluate([("The  Old loom", "THE old")])["exact"] == 100.0


def test_the_first_words_are_counted_without_the_marks_between_them() -> None:
    answer = first_words(3)([])
    assert answer("ap - a ( one ) founded by") == "ap - a ( one )"
    assert answer("a b") == "a b"


def test_a_baseline_reads_several_references() -> None:
    grouped = [*TASK, "task.group_references=true"]
    rule = Baseline(first_words(1), "g2p-small", grouped, [("a", "b")])
    assert rule.evaluate([("a b", "x"), ("a b", "a"), ("c d", "x")])["exact"] == 50.0
