"""Several tasks in one run, as people use it: train, resume, predict, evaluate, explain, save."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import seqloom
from seqloom.errors import SeqloomError
from seqloom.storage.run import Run
from seqloom.storage.weights import read
from seqloom.train.display import Display
from tests.cli.conftest import RECURRENT, TEXT, TRANSLATOR, Command, pairs, toml, tsv

LABEL = {"name": "parity", "type": "answer", "share": 1, "source": TEXT, "metrics": ["accuracy"]}
LABEL |= {"target": {"type": "text", "units": "word"}, "decoder": {"type": "label"}}
RECIPE: dict[str, Any] = {
    "task": [
        {"name": "backwards", "share": 2, "source": TEXT, "target": TEXT, "metrics": ["exact"]},
        {"name": "twice", "share": 1, "source": TEXT, "target": TEXT, "metrics": ["cer"]},
        LABEL,
    ],
    "encoder": RECURRENT,
    "decoder": RECURRENT,
    "train": {**TRANSLATOR["train"], "steps": 6, "validate_every": 3, "select_by": "twice/cer"},
}
DATA = {
    "backwards": pairs(40),
    "twice": [(source, source * 2) for source, _ in pairs(40)],
    "parity": [(source, "odd" if int(source) % 2 else "even") for source, _ in pairs(40)],
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("several") / "run"
    seqloom.fit(DATA, RECIPE, out=out, display=Display.quiet())
    return out


@pytest.fixture
def files() -> list[str]:
    """The options that name the files of all tasks."""
    found = []
    for name, rows in DATA.items():
        Path(f"{name}.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in rows))
        found += ["--data", f"{name}={name}.tsv"]
    return found


def test_a_run_that_is_stopped_and_resumed_equals_an_unbroken_one(
    trained: Path, command: Command, files: list[str]
) -> None:
    recipe = toml(RECIPE)
    broken = command("train", recipe, *files, "--out", "out", "--set", "train.steps=3")
    assert broken.code == 0, broken.err
    whole = command("train", recipe, *files, "--out", "whole")
    assert whole.code == 0, whole.err
    again = command("train", recipe, *files, "--out", "out", "--resume")
    assert again.code == 0, again.err
    assert "resumed at step 3" in again.err
    ours, theirs = (Run.open(name).newest() for name in ("out", "whole"))
    assert ours is not None
    assert theirs is not None
    for file in ("model.safetensors", "optimiser.safetensors"):
        first, second = read(ours.path / file), read(theirs.path / file)
        assert first.keys() == second.keys()
        assert all(first[name].equal(second[name]) for name in first)


def test_metrics_are_those_of_each_task_and_the_loss_is_their_mean(trained: Path) -> None:
    import json

    lines = [json.loads(line) for line in (trained / "metrics.jsonl").read_text().splitlines()]
    last = [line for line in lines if line["kind"] == "valid"][-1]
    assert {"backwards/exact", "twice/cer", "parity/accuracy"} <= last.keys()
    losses = [last[f"{name}/loss"] for name in DATA]
    assert last["loss"] == pytest.approx(sum(losses) / 3)


def test_every_verb_asks_for_the_task_and_takes_it(trained: Path, command: Command) -> None:
    for words in (["predict"], ["evaluate", "--data", tsv()], ["explain"], ["score", "--data", tsv()]):
        rest = [trained, *words[1:], *(["123"] if words[0] == "explain" else [])]
        said = command(words[0], *rest, stdin="123\n").complaint
        assert "has several tasks (backwards, twice, parity): name one, --task backwards" in said
        found = command(words[0], *rest, "--task", "backwards", stdin="123\n")
        assert found.code == 0, found.err
    assert 'has no task "twise" (did you mean "twice"?)' in command("predict", trained, "--task", "twise").complaint
    answer = command("predict", trained, "--task", "parity", stdin="123\n").out.strip()
    assert answer in ("odd", "even")


def test_a_run_of_one_task_takes_no_name(translator: Path, command: Command) -> None:
    assert "has one task, which has no name" in command("predict", translator, "--task", "a", stdin="1\n").complaint


def test_in_python_a_task_is_taken_first(trained: Path, tmp_path: Path) -> None:
    model = seqloom.load(trained)
    assert model.tasks == ("backwards", "twice", "parity")
    for name in model.tasks:
        assert len(model.for_task(name).predict(["123", "45"])) == 2
    assert seqloom.load(trained, task="twice").predict(["123"]) == model.for_task("twice").predict(["123"])
    with pytest.raises(SeqloomError, match=r'several tasks .*for_task\("backwards"\)'):
        model.predict(["123"])
    model.save(tmp_path / "copy")  # type: ignore[union-attr]
    assert seqloom.load(tmp_path / "copy").for_task("parity").predict(["1"]) == model.for_task("parity").predict(["1"])
    with pytest.raises(SeqloomError, match="save the whole run"):
        model.for_task("twice").save(tmp_path / "other")  # type: ignore[union-attr]


def test_ensembles_are_of_one_task(trained: Path, command: Command) -> None:
    found = command("predict", trained, trained, "--task", "twice", stdin="12\n")
    assert found.code == 0, found.err
    assert found.out == command("predict", trained, "--task", "twice", stdin="12\n").out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"drop": "parity"}, "parity: no training data: give --data parity=FILE"),
        ({"rename": "parities"}, "--data parities=...: the recipe has no task of this name"),
        ({"init": "elsewhere"}, "elsewhere is not a run folder"),
    ],
)
def test_mistakes_are_one_line_and_write_nothing(
    command: Command, files: list[str], change: dict[str, str], message: str
) -> None:
    if "drop" in change:
        files = files[:-2]
    if "rename" in change:
        files[-1] = f"{change['rename']}=parity.tsv"
    extra = ["--init", change["init"]] if "init" in change else []
    assert message in command("train", toml(RECIPE), *files, "--out", "out", *extra).complaint
    assert not Path("out").exists()


def test_a_run_of_several_tasks_starts_no_other(command: Command, trained: Path) -> None:
    assert "several tasks" in command("train", "--data", tsv(), "--init", trained, "--out", "out").complaint


def test_one_task_of_a_run_is_exported_and_diagnosed(trained: Path, command: Command) -> None:
    shutil.copytree(trained, "run")
    for verb, rest in (("export", ["--to", "onnx", "--out", "made"]), ("diagnose", [])):
        assert "several tasks" in command(verb, "run", *rest).complaint
        found = command(verb, "run", *rest, "--task", "backwards")
        assert found.code == 0, found.err
    ours = command("predict", "run", "--task", "backwards", stdin="123\n").out
    assert command("predict", "made", stdin="123\n").out == ours


def test_sizes_and_costs_are_those_of_one_task(trained: Path, command: Command) -> None:
    recipe = toml(RECIPE)
    for name in (trained, recipe):
        assert "has several tasks" in command("info", name).complaint
        found = command("info", name, "--task", "twice", "--json")
        assert found.code == 0, found.err
        assert '"train_flops_per_token"' in found.out
    Path("twice.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in DATA["twice"]))
    assert command("info", recipe, "--task", "twice", "--data", "twice.tsv").code == 0
    assert "several tasks" in command("gradcheck", recipe).complaint


def test_a_warning_names_its_task(command: Command, files: list[str]) -> None:
    """Words of the validation data that training has not seen."""
    changes = ["--set", "tasks.twice.source.units=word", "--dry-run"]
    said = command("train", toml(RECIPE), *files, "--out", "out", *changes).err
    assert "Warning: twice: 100 % of the source tokens of the validation data are not in the vocabulary" in said
    assert "Warning: backwards" not in said
