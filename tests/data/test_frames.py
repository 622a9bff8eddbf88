"""Data frames, series, data sets, iterators and Parquet: what is read, and the one line for what cannot be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqloom.data.frames import as_list
from seqloom.data.layout import Layout
from seqloom.data.lines import repeatable
from seqloom.data.readers import Tally, examples
from seqloom.errors import SeqloomError
from tests.data.test_files import Expected, meets

pandas = pytest.importorskip("pandas")
arrow = pytest.importorskip("pyarrow")

BOTH = [("good film", "pos"), ("bad film", "neg")]
TEXTS, LABELS = ["good film", "bad film"], ["pos", "neg"]
NAMED = Layout(columns=("text", "label"))


class DataSet:
    """What `datasets.Dataset` can do, as far as it is used."""

    def __init__(self, **columns: list[Any]):
        self.columns = columns
        self.column_names = list(columns)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (dict(zip(self.columns, row)) for row in zip(*self.columns.values()))


class Splits(dict[str, DataSet]):
    """What `datasets.DatasetDict` is."""

    @property
    def column_names(self) -> dict[str, list[str]]:
        return {name: split.column_names for name, split in self.items()}


def series(values: list[Any], start: int = 0) -> Any:
    return pandas.Series(values, index=range(start, start + len(values)))


def frame(**columns: Any) -> Any:
    return pandas.DataFrame(columns)


CASES: list[tuple[Callable[[], Any], Layout, Expected]] = [
    (lambda: frame(text=TEXTS, label=LABELS), Layout(), BOTH),
    (lambda: frame(id=[1, 2], text=TEXTS, label=LABELS), NAMED, BOTH),
    (lambda: frame(id=[1, 2], text=TEXTS, label=LABELS), Layout(columns=(2, 3)), BOTH),
    (lambda: frame(target=LABELS, id=[1, 2], source=TEXTS), Layout(), BOTH),
    (lambda: frame(text=TEXTS, label=[1, 0]), Layout(), [("good film", "1"), ("bad film", "0")]),
    (lambda: frame(text=TEXTS, label=[0.5, 2]), Layout(), [("good film", "0.5"), ("bad film", "2.0")]),
    (lambda: frame(text=TEXTS, label=pandas.Categorical(LABELS)), Layout(), BOTH),
    (lambda: frame(text=[["a", "b"]], tags=[np.array([3, 1])]), Layout(), [("a b", "3 1")]),
    (lambda: frame(text=TEXTS, label=LABELS).set_index(pandas.Index([7, 9])), Layout(), BOTH),
    (lambda: pandas.DataFrame(BOTH), Layout(), BOTH),
    (lambda: (series(TEXTS, 1), series(LABELS, 100)), Layout(), BOTH),
    (lambda: (series(TEXTS, 1), series(LABELS)), NAMED, BOTH),
    (lambda: (np.array(TEXTS), np.array([1, 0])), Layout(), [("good film", "1"), ("bad film", "0")]),
    (lambda: {"text": TEXTS, "label": series(LABELS, 5)}, Layout(), BOTH),
    (lambda: {"id": [1, 2], "text": TEXTS, "label": LABELS}, NAMED, BOTH),
    (lambda: [{"text": text, "label": label} for text, label in BOTH], NAMED, BOTH),
    (lambda: [{"source": "a", "target": 1}], Layout(), [("a", "1")]),
    (lambda: DataSet(text=TEXTS, label=[1, 0]), Layout(), [("good film", "1"), ("bad film", "0")]),
    (lambda: DataSet(id=[1, 2], text=TEXTS, label=LABELS), NAMED, BOTH),
    (lambda: arrow.table({"text": TEXTS, "label": LABELS}), Layout(), BOTH),
    (lambda: iter(BOTH), Layout(), BOTH),
    (lambda: zip(TEXTS, LABELS), Layout(), BOTH),
    (lambda: dict(BOTH).items(), Layout(), BOTH),
    (lambda: [["a", "b"], ("c", 3)], Layout(), [("a", "b"), ("c", "3")]),
    (lambda: [(["a", "b"], ["X", "Y"])], NAMED, [("a b", "X Y")]),
    (lambda: [("a b", [3, 1]), (["c"], np.array([2]))], Layout(), [("a b", "3 1"), ("c", "2")]),
    (lambda: [([0.5, 1.0], 3)], Layout(), [([0.5, 1.0], 3)]),
    # What cannot be read
    (lambda: frame(id=[1], text=["a"], label=["b"]), Layout(), "(id, text, label): name two of them with columns="),
    (lambda: frame(text=["a"], label=["b"]), Layout(columns=("txt", "label")), 'no column "txt" (did you mean'),
    (lambda: frame(text=["a", "b"], label=["x", None]), Layout(), "the data frame, row 2: the target is missing"),
    (lambda: frame(text=["a", float("nan")], label=["x", "y"]), Layout(), "frame, row 2: the source is missing"),
    (lambda: frame(text=["a"], label=[pandas.NA]), Layout(), "the data frame, row 1: the target is missing"),
    (lambda: frame(text=["a"], label=[{"b": 1}]), Layout(), "expected the target to be text, a number or a list"),
    (lambda: frame(text=[], label=[]), Layout(), "the data frame is empty"),
    (lambda: pandas.DataFrame([["a", "b"]], columns=["x", "x"]), Layout(columns=("x", "x")), '2 columns called "x"'),
    (lambda: (series(TEXTS), series(LABELS[:1])), Layout(), "columns of different lengths (source: 2, target: 1)"),
    (lambda: {"text": TEXTS, "label": ["a"]}, Layout(), "columns of different lengths (text: 2, label: 1)"),
    (lambda: dict(BOTH), Layout(), "expected a dictionary of columns"),
    (lambda: series(TEXTS), Layout(), "line 1: expected a (source, target) tuple"),
    (lambda: Splits(train=DataSet(text=["a"])), Layout(), 'splits (train); give one of them, as data["train"]'),
    (lambda: [{"question": "a", "answer": "b"}], Layout(), 'name the columns with columns=["question", "answer"]'),
    (lambda: [("a", "b"), 3], Layout(), "line 2: expected a (source, target) tuple, found 3"),
    (lambda: [("a", None)], Layout(), "line 1: the target is missing"),
    (lambda: [(float("nan"), "b")], Layout(), "line 1: expected a (source, target) tuple with a source"),
    (lambda: 3, Layout(), "the data is 3; expected a file, two aligned files, (source, target) tuples"),
    (lambda: iter([]), Layout(), "is empty"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "layout", "expected"), CASES)
def test_what_python_holds_is_read_exactly_or_refused_in_one_line(
    make: Callable[[], Any], layout: Layout, expected: Expected
) -> None:
    meets(examples(make(), 2, layout=layout), expected)


def test_data_sets_of_the_library_are_read_like_their_stand_in() -> None:
    library = pytest.importorskip("datasets")
    data = library.Dataset.from_dict({"id": [1, 2], "text": TEXTS, "label": [1, 0]})
    wanted: Expected = [("good film", "1"), ("bad film", "0")]
    meets(examples(data, 2, layout=NAMED), wanted)
    meets(examples(data.to_iterable_dataset(), 2, layout=NAMED), wanted)
    meets(examples(data, 2), "the data set has 3 columns (id, text, label): name two of them with columns=")
    meets(examples(library.DatasetDict(train=data), 2), 'splits (train); give one of them, as data["train"]')


def test_a_language_model_takes_a_series_or_one_column() -> None:
    wanted = [(None, "a"), (None, "b")]
    for data in (series(["a", "b"], 1), frame(text=["a", "b"]), {"id": [1, 2], "text": ["a", "b"]}, iter(["a", "b"])):
        meets(examples(data, 1), wanted)
    meets(examples(frame(id=[1], body=["a"]), 1), 'name the text with columns=["body"]')


def test_an_iterator_is_fit_for_several_passes(tmp_path: Path) -> None:
    with repeatable(iter(BOTH), tmp_path) as data:
        assert data is not None
        for _ in range(3):
            meets(examples(data, 2), BOTH)


def test_one_column_of_any_kind_is_a_list() -> None:
    for values in (TEXTS, iter(TEXTS), series(TEXTS, 1), np.array(TEXTS), tuple(TEXTS)):
        assert as_list(values, "sources") == TEXTS
    arrays = [np.zeros(3), np.ones(3)]
    assert as_list(arrays, "sources") == arrays
    for wrong, word in (("text", "one string"), (frame(text=TEXTS), "one of its columns"), (3, "not 3")):
        with pytest.raises(SeqloomError, match=word):
            as_list(wrong, "sources")


class TestParquet:
    @staticmethod
    def written(folder: Path, name: str = "a.parquet", **columns: Any) -> Path:
        from pyarrow import parquet

        parquet.write_table(arrow.table(columns), folder / name)
        return folder / name

    @pytest.mark.parametrize(
        ("columns", "layout", "expected"),
        [
            ({"text": TEXTS, "label": LABELS}, Layout(), BOTH),
            ({"id": [1, 2], "text": TEXTS, "label": LABELS}, NAMED, BOTH),
            ({"id": [1, 2], "text": TEXTS, "label": LABELS}, Layout(columns=(2, 3)), BOTH),
            ({"text": ["a"], "label": [3]}, Layout(), [("a", "3")]),
            ({"text": [["a", "b"]], "tags": [[3, 1]]}, Layout(), [("a b", "3 1")]),
            ({"text": ["a"], "day": [date(2020, 1, 2)]}, Layout(), [("a", "2020-01-02")]),
            ({"id": [1], "text": ["a"], "label": ["b"]}, Layout(), "has 3 columns (id, text, label): name two of them"),
            ({"text": ["a", "b"], "label": ["x", None]}, Layout(), "a.parquet, row 2: the target is missing"),
            ({"text": ["a"], "label": [b"x"]}, Layout(), "row 1: expected the target to be text, a number or a list"),
            ({"text": ["a"]}, NAMED, 'a.parquet has no column "label"; it has 1 column (text)'),
        ],
    )
    def test_columns_are_read_or_refused(
        self, tmp_path: Path, columns: dict[str, list[Any]], layout: Layout, expected: Expected
    ) -> None:
        meets(examples(self.written(tmp_path, **columns), 2, layout=layout), expected)

    def test_nulls_are_skipped_and_counted(self, tmp_path: Path) -> None:
        path, tally = self.written(tmp_path, text=["a", None, "c"], label=["x", "y", "z"]), Tally()
        found = [each.line for each in examples(path, 2, skip_bad=True, tally=tally)]
        assert found == [1, 3]
        assert tally.sentence("bad") == "Skipped 1 bad row: 1 x empty source (first at row 2)."

    def test_what_is_no_parquet_is_told(self, tmp_path: Path) -> None:
        (tmp_path / "a.parquet").write_text("a\tb\n")
        meets(examples(tmp_path / "a.parquet", 2), "cannot be read as Parquet")
        meets(examples(tmp_path / "nowhere.parquet", 2), "there is no such file")
        meets(examples(self.written(tmp_path, text=[], label=[]), 2), "is empty")

    def test_texts_and_dates_that_python_cannot_hold_are_told(self, tmp_path: Path) -> None:
        bad = arrow.array([b"ok", b"\xa0"]).view(arrow.string())
        self.written(tmp_path, text=bad, label=["x", "y"])
        meets(examples(tmp_path / "a.parquet", 2), "cannot be read as Parquet ('utf-8' codec can't decode byte 0xa0")
        late = arrow.array([2**60]).view(arrow.timestamp("us"))
        self.written(tmp_path, text=late, label=["x"])
        meets(examples(tmp_path / "a.parquet", 2), "cannot be read as Parquet")

    def test_a_missing_package_is_named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = self.written(tmp_path, text=["a"], label=["b"])
        monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
        meets(examples(path, 2), 'pip install "seqloom[tables]"')
