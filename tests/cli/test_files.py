"""Tables, keys and data frames from the command line and from Python: columns are named once and kept in the run."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

import seqloom
from seqloom.analysis.diagnosis.commands import Commands
from seqloom.data.layout import Layout
from seqloom.errors import SeqloomError
from seqloom.storage.toml import read_toml
from seqloom.train.display import Display
from tests.cli.conftest import Command, pairs, toml, tsv, written


def table(path: str, rows: list[tuple[str, str]], header: bool = True) -> Path:
    """Numbers, an id and the same backwards, with columns that nobody would guess."""
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([("there", "id", "back")] * header)
        writer.writerows((source, f"no. {index}", target) for index, (source, target) in enumerate(rows))
    return Path(path)


@pytest.fixture
def run(command: Command, recipe: dict[str, Any]) -> Path:
    """A run that was trained on named columns of a CSV file."""
    recipe["train"]["steps"] = 3
    given = ["--data", table("train.csv", pairs()), "--columns", "there,back", "--out", "run"]
    outcome = command("train", toml(recipe), *given)
    assert outcome.code == 0, outcome.err
    return Path("run")


def test_columns_are_named_once_and_kept_in_the_run(command: Command, run: Path) -> None:
    assert read_toml(run / "config.toml")["data"]["columns"] == ["there", "back"]
    other = table("other.csv", pairs(7))
    plain = command("evaluate", run, "--data", tsv(rows=pairs(7)), "--columns", "1,2")
    measured = command("evaluate", run, "--data", other)
    assert (measured.code, json.loads(measured.out)["examples"]) == (0, 7)
    assert measured.out == plain.out
    assert len(command("score", run, "--data", other).out.splitlines()) == 7
    with open("rows.tsv", "w") as file:
        file.writelines(f"{number}\t{target}\t{source}\n" for number, (source, target) in enumerate(pairs(7)))
    assert command("evaluate", run, "--data", "rows.tsv", "--columns", "3,2").out == plain.out
    resumed = command("train", "--resume", "--out", run, "--set", "train.steps=4")
    assert resumed.code == 0, resumed.err


def test_a_diagnosis_reads_the_columns_too_and_types_them_again(command: Command, run: Path) -> None:
    same = command("diagnose", run, "--data", table("other.csv", pairs(7)), "--json")
    other = command("diagnose", run, "--data", tsv(rows=pairs(7)), "--columns", "1,2", "--no-header", "--json")
    assert (same.code, other.code) == (0, 0), same.err + other.err
    assert json.loads(same.out)["figures"]["outputs"] == json.loads(other.out)["figures"]["outputs"]
    commands = Commands(run, read_toml(run / "config.toml"), ["a.tsv"], Layout((1, 2), header=False))
    assert commands.diagnose() == "seqloom diagnose run --data a.tsv --columns 1,2 --no-header"
    assert "--data train.csv --columns there,back --out" in commands.other_recipe("dates")


def test_a_file_with_other_columns_is_told(command: Command, run: Path) -> None:
    message = command("evaluate", run, "--data", tsv()).complaint
    assert 'pairs.tsv has no column "there"; it has 2 columns (100, 001)' in message
    assert "--columns" in message
    two = ["--data", written("a", "1\n"), "--data", written("b", "1\n")]
    assert "two aligned files" in command("evaluate", run, *two, "--columns", "1,2").complaint
    assert "such as text,label" in command("evaluate", run, "--data", "train.csv", "--columns", "a,,b").complaint


def test_keys_of_json_are_named_the_same_way(command: Command, recipe: dict[str, Any]) -> None:
    rows = [{"question": source, "answer": int(target)} for source, target in pairs()]
    lines = written("rows.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    array = written("rows.json", json.dumps(rows, indent=1))
    asked = command("train", toml(recipe), "--data", lines, "--out", "run").complaint
    assert "rows.jsonl has 2 columns (question, answer): name the columns with --keys question,answer" in asked
    recipe["train"]["steps"] = 2
    assert command("train", toml(recipe), "--data", lines, "--keys", "question,answer", "--out", "run").code == 0
    first, second = (command("evaluate", "run", "--data", path) for path in (lines, array))
    assert (first.code, first.out) == (0, second.out)


def test_a_probable_header_is_asked_about_by_every_command(command: Command, translator: Path) -> None:
    data = written("a.csv", "source,target\n12,21\n13,31\n")
    for asked in (["train", "--out", "out"], ["evaluate", translator], ["score", translator]):
        message = command(*asked, "--data", data).complaint
        assert "a.csv, line 1 looks like a header (source, target): name the columns with --columns" in message
        assert "--no-header" in message
    with_header = command("score", translator, "--data", data, "--header")
    assert with_header.out == command("score", translator, stdin="12\t21\n13\t31\n").out
    assert len(command("score", translator, "--data", data, "--no-header").out.splitlines()) == 3


def test_a_recipe_is_chosen_for_named_columns_too(command: Command) -> None:
    small = [word for each in ("train.steps=1", "encoder.size=8", "decoder.size=8") for word in ("--set", each)]
    outcome = command("train", "--data", table("t.csv", pairs()), "--columns", "there,back", "--out", "out", *small)
    assert outcome.code == 0, outcome.err
    assert "60 pairs" in outcome.err


@pytest.mark.parametrize("verb", ["predict", "evaluate", "explain"])
def test_a_file_where_a_run_is_expected_is_told_as_such(command: Command, translator: Path, verb: str) -> None:
    message = command(verb, tsv()).complaint
    assert "pairs.tsv is a file, and a run folder was expected" in message
    assert "standard input (< pairs.tsv)" in message
    assert "--data pairs.tsv" in message
    if verb == "predict":
        assert "pairs.tsv is a file" in command(verb, translator, "pairs.tsv").complaint


def test_an_empty_source_has_an_empty_output_in_python_as_on_the_command_line(
    command: Command, translator: Path
) -> None:
    model = seqloom.load(translator)
    found = model.predict(["12", "", "  ", "13"])
    assert found == command("predict", translator, stdin="12\n\n  \n13\n").out.split("\n")[:4]
    assert found[1:3] == ["", ""]
    assert model.predict(["", "13"])[1] == model.predict(["13"])[0]
    assert model.predict([""]) == [""]
    assert [len(each) for each in model.candidates(["12", "", "13"], n_best=2)] == [2, 0, 2]
    with pytest.raises(SeqloomError, match="line 2: the source is empty"):
        model.evaluate([("12", "21"), ("", "31")])


def test_python_takes_tables_series_and_iterators(tmp_path: Path, recipe: dict[str, Any]) -> None:
    pandas = pytest.importorskip("pandas")
    recipe["train"]["steps"] = 2
    rows = pairs()
    frame = pandas.DataFrame(rows, columns=["there", "back"], index=range(1, 61))
    frame["id"] = 1

    def config(name: str, data: Any, **options: Any) -> seqloom.Predictor:
        return seqloom.fit(data, recipe, out=tmp_path / name, display=Display.quiet(), **options)

    first = config("pairs", rows)
    wanted = first.evaluate(rows)
    trained = [
        config("frame", frame, columns=["there", "back"]),
        config("series", (frame["there"], frame["back"])),
        config("iterator", iter(rows)),
        config("dictionary", {"source": frame["there"], "target": [target for _, target in rows]}),
        config("file", table(str(tmp_path / "t.csv"), rows), columns=["there", "back"]),
    ]
    for model in trained:
        assert model.evaluate(rows) == wanted
    for data in (frame, (frame["there"], frame["back"]), iter(rows), frame.to_dict("records"), tmp_path / "t.csv"):
        assert trained[0].evaluate(data) == wanted
    assert trained[0].score(frame) == first.score(rows)
    sources = [source for source, _ in rows]
    assert first.predict(frame["there"]) == first.predict(iter(sources)) == first.predict(sources)
    with pytest.raises(SeqloomError, match="one of its columns"):
        first.predict(frame)
    with pytest.raises(SeqloomError, match=r"has 3 columns \(there, back, id\): name two of them with columns="):
        config("out", frame)
    with pytest.raises(SeqloomError, match=r"columns = \'there\': expected a list"):
        config("out", frame, columns="there")
