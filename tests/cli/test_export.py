"""`seqloom export`, and what it writes in use: predict, evaluate, load; damaged folders; awake at once."""

from __future__ import annotations

import copy
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import seqloom
from seqloom.engines import export as exporting
from seqloom.errors import SeqloomError
from tests.cli.conftest import TRANSLATOR, pairs, trained, tsv, written

SIDE = {"type": "transformer", "size": 16, "layers": 1, "heads": 2, "hidden": 32, "dropout": 0.0}
LINES = "123\n\n145\n101\n"


@pytest.fixture(scope="session")
def transformer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Transformer that reverses numbers, well enough to know which tokens never come."""
    recipe: dict[str, Any] = {**copy.deepcopy(TRANSLATOR), "encoder": SIDE, "decoder": SIDE}
    recipe["train"] |= {"steps": 150, "validate_every": 150}
    return trained(tmp_path_factory.mktemp("transformer"), recipe, pairs())


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory, transformer: Path, translator: Path) -> dict[str, Path]:
    """What is exported, by engine."""
    house = tmp_path_factory.mktemp("exported")
    return {
        "ctranslate2": exporting.export(transformer, "ctranslate2", house / "ctranslate2"),
        "onnx": exporting.export(translator, "onnx", house / "onnx"),
    }


@pytest.fixture
def runs(transformer: Path, translator: Path) -> dict[str, Path]:
    return {"ctranslate2": transformer, "onnx": translator}


@pytest.fixture
def broken(folders: dict[str, Path], tmp_path: Path) -> Path:
    """A copy to break."""
    shutil.copytree(folders["ctranslate2"], tmp_path / "broken")
    return tmp_path / "broken"


ENGINES = pytest.mark.parametrize("engine", ["ctranslate2", "onnx"])


# -- in use


@ENGINES
@pytest.mark.parametrize("options", [[], ["--beam-size", 1], ["--prefix", "2"], ["--ban", "1", "--set", "no_repeat=2"]])
def test_an_exported_model_says_what_its_run_says(command, folders, runs, engine, options):
    if engine == "ctranslate2" and "--ban" in options:
        options = [*options, "--beam-size", 1]  # in a wider beam it ranks by what is left of the probabilities
    ours, theirs = (command("predict", path, *options, stdin=LINES) for path in (folders[engine], runs[engine]))
    assert (ours.code, ours.out) == (0, theirs.out)
    assert len(ours.out.splitlines()) == 4


@ENGINES
def test_outputs_come_with_scores_tokens_and_where_they_looked(command, folders, runs, engine):
    options = ["--n-best", 2, "--attention"]
    for ours, theirs in zip(
        *(
            command("predict", path, *options, stdin="123\n145\n").out.splitlines()
            for path in (folders[engine], runs[engine])
        )
    ):
        found, expected = (json.loads(line)["outputs"][0] for line in (ours, theirs))
        assert found["tokens"] == expected["tokens"]
        assert found["log_probs"] == pytest.approx(expected["log_probs"], abs=1e-4)
        assert found["score"] == pytest.approx(expected["score"], abs=1e-4)
        assert len(found["attention"][0]) == len(expected["attention"][0]) == 3
        if engine == "onnx":
            assert found["attention"][0] == pytest.approx(expected["attention"][0], abs=1e-4)


@ENGINES
def test_an_exported_model_measures_like_its_run(command, folders, runs, engine):
    tsv()
    ours, theirs = (
        command("evaluate", path, "--data", "pairs.tsv", "--beam-size", 1) for path in (folders[engine], runs[engine])
    )
    assert json.loads(ours.out) == json.loads(theirs.out)


@ENGINES
def test_load_takes_an_exported_folder_like_any_other(folders, runs, engine):
    ours, theirs = seqloom.load(folders[engine]), seqloom.load(runs[engine])
    assert ours.predict(["123", "145"], beam_size=1) == theirs.predict(["123", "145"], beam_size=1)
    with pytest.raises(SeqloomError, match="makes no ensemble"):
        seqloom.load(folders[engine], runs[engine])
    with pytest.raises(SeqloomError, match="runs on the processor"):
        seqloom.load(folders[engine], device="cuda")


@pytest.mark.parametrize("verb", ["score", "generate", "explain"])
def test_what_only_a_run_can_do_is_refused(command, folders, verb):
    assert (
        "is an exported model, for `seqloom predict` and `evaluate` alone" in command(verb, folders["onnx"]).complaint
    )


def test_what_an_engine_cannot_do_is_refused(command, folders):
    said = command("predict", folders["ctranslate2"], "--require", "1", stdin="123\n").complaint
    assert (
        said == "the constraint Required: CTranslate2 cannot do that; leave it out, or use the run it was exported from"
    )


# -- exporting


def test_eight_bits_are_measured_and_refused_beyond_what_is_allowed(command, transformer):
    tsv()
    said = command("export", transformer, "--to", "ctranslate2", "--int8", "--out", "a").complaint
    assert said.endswith("but the run's validation data is not there: give --data, or take it with --force")
    given = ["--to", "ctranslate2", "--int8", "--data", "pairs.tsv"]
    said = command("export", transformer, *given, "--out", "a", "--allow=-1000")
    assert said.code == 2
    assert said.err.startswith("Measuring both on pairs.tsv.\nseqloom: in 8 bits exact is ")
    assert said.err.endswith("a loss of -1000 is allowed: leave --int8 out, raise --allow, or take it with --force\n")
    assert not Path("a").exists()
    assert not list(Path().glob(".a*"))
    assert command("export", transformer, *given, "--out", "a", "--allow", 100).code == 0
    assert command("export", transformer, *given, "--out", "b", "--allow=-1000", "--force").code == 0
    measured = json.loads(Path("a/engine.json").read_text())["measured"]
    assert measured["examples"] == 60
    assert measured["run"].keys() == measured["export"].keys() == {"exact", "cer"}
    assert 0 <= measured["identical"] <= 1
    assert seqloom.load("a").measured == measured


def test_the_folder_is_named_after_the_run(command, transformer, tmp_path):
    shutil.copytree(transformer, tmp_path / "run")
    said = command("export", "run", "--to", "ctranslate2")
    assert "The exported model is in run-ctranslate2" in said.err
    assert (
        command("export", "run", "--to", "ctranslate2").complaint
        == "run-ctranslate2 already exists: choose another --out"
    )


def test_what_cannot_be_exported_is_refused_and_leaves_nothing(command, transformer, translator, language_model):
    for run, to, reason in (
        (translator, "ctranslate2", "takes a Transformer that reads tokens"),
        (transformer, "onnx", "does not support decoders with a KV cache: use --to ctranslate2"),
        (language_model, "onnx", "supports one model that reads a source"),
        (transformer, "onx", 'no such engine (did you mean "onnx"?)'),
        (Path("nowhere"), "onnx", "is not a run folder"),
    ):
        assert reason in command("export", run, "--to", to, "--out", "a").complaint
    assert list(Path().iterdir()) == []


def test_a_crash_leaves_no_folder(transformer, monkeypatch):
    def crash(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(exporting, "measure", crash)
    with pytest.raises(KeyboardInterrupt):
        exporting.export(transformer, "ctranslate2", "a", data=[str(tsv())])
    assert [path.name for path in Path().iterdir()] == ["pairs.tsv"]


# -- damaged


@pytest.mark.parametrize(
    ("file", "content", "reason"),
    [
        ("engine.json", "{", "cannot be read"),
        ("engine.json", "[]", "must hold a JSON object"),
        ("engine.json", "{}", '"format" must be a whole number, not null'),
        ("engine.json", '{"format": 99}', "has export format 99"),
        ("engine.json", '{"format": 1, "engine": "steam"}', '"engine" is "steam"; expected one of ctranslate2, onnx'),
        ("engine.json", '{"format": 1, "engine": "onnx"}', '"settings" must be an object'),
        ("model/model.bin", "nothing", "is missing or damaged"),
        ("model/config.json", None, "is missing or damaged"),
        ("target.tokenizer.json", None, "target.tokenizer.json"),
        ("target.tokenizer.json", "{", "target.tokenizer.json"),
    ],
)
def test_a_damaged_folder_is_one_line(command, broken, file, content, reason):
    if content is None:
        (broken / file).unlink()
    else:
        written(broken / file, content)
    assert reason in command("predict", broken, stdin="123\n").complaint


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"recipe": {}}, "its recipe is not whole"),
        ({"settings": {}}, "its model cannot be read"),
        ({"settings": {"eos": 3, "what": 1}}, "its model cannot be read"),
        ({"engine": "onnx"}, "its model cannot be read"),
        ({"engine": ["onnx"]}, '"engine" is ["onnx"]'),
        ({"settings": {"eos": "3"}}, 'settings.eos = "3": expected a number'),
        ({"settings": {"eos": 1e308}}, "settings.eos = 1e+308: expected a number"),
        ({"recipe": {"task": 3, "search": {"type": "beam"}, "data": {}}}, "its recipe is not whole"),
        ({"recipe": {"task": {}, "search": [], "data": {}}}, "its recipe is not whole"),
    ],
)
def test_a_foreign_manifest_is_one_line(command, broken, change, reason):
    content = json.loads((broken / "engine.json").read_text())
    written(broken / "engine.json", json.dumps({**content, **change}))
    assert reason in command("predict", broken, stdin="123\n").complaint


def test_a_model_of_the_right_size_that_is_none_is_one_line(command, broken):
    size = (broken / "model/model.bin").stat().st_size
    written(broken / "model/model.bin", b"\xff" * size)
    assert "its model cannot be read" in command("predict", broken, stdin="123\n").complaint


def test_a_folder_with_a_link_or_a_pipe_is_one_line(command, broken):
    model = broken / "model/model.bin"
    model.unlink()
    model.symlink_to("/dev/zero")
    assert "model.bin is missing or damaged" in command("predict", broken, stdin="123\n").complaint
    model.unlink()
    os.mkfifo(model)
    assert "model.bin is missing or damaged" in command("predict", broken, stdin="123\n").complaint
    manifest = broken / "engine.json"
    manifest.rename(broken / "moved")
    manifest.symlink_to("moved")
    assert "engine.json cannot be read (it is a symbolic link" in command("predict", broken, stdin="123\n").complaint


def test_a_recipe_with_values_of_other_types_is_one_line(command, broken):
    content = json.loads((broken / "engine.json").read_text())
    content["recipe"]["data"]["max_characters"] = "many"
    written(broken / "engine.json", json.dumps(content))
    assert "engine.json: recipe.data.max_characters" in command("predict", broken, stdin="123\n").complaint


@ENGINES
def test_a_model_that_fails_or_writes_tokens_beyond_its_vocabulary_is_one_line(folders, engine, monkeypatch):
    model = seqloom.load(folders[engine])
    whole = model.system.model.tokens
    assert whole == model.task.target.vocabulary
    model.system.model.tokens = 5
    with pytest.raises(SeqloomError, match="writes tokens that its vocabulary of 5 lacks"):
        model.predict(["123"])
    monkeypatch.setattr(type(model.system.model), "compute", lambda *_: [][0])
    with pytest.raises(SeqloomError, match="the exported model cannot be computed"):
        model.predict(["123"])


def test_a_graph_with_other_names_is_one_line(command, folders):
    """The library would print to standard output that it tries again."""
    shutil.copytree(folders["onnx"], "broken")
    step = Path("broken/model/step.onnx")
    whole = step.read_bytes()
    for before, after, reason in (
        (b"MatMul", b"Mat\xabul", "its model cannot be read"),
        (b"logits", b"\x1b[2Jxx", "cannot be computed"),
    ):
        assert before in whole
        step.write_bytes(whole.replace(before, after))
        outcome = command("predict", "broken", stdin="123\n")
        assert reason in outcome.complaint
        assert outcome.out == ""


def test_an_engine_that_is_not_installed_is_one_line(command, folders, monkeypatch):
    monkeypatch.setattr("seqloom.engines.engine.find_spec", lambda name: None)
    said = command("predict", folders["onnx"], stdin="123\n").complaint
    assert said == "this needs onnxruntime: install it with pip install 'seqloom[engines]'"


# -- awake at once


@ENGINES
def test_a_first_answer_needs_neither_torch_nor_any_other_large_package(folders, engine):
    program = (
        "import atexit, sys\n"
        "atexit.register(lambda: print([name for name in LARGE if name in sys.modules], file=sys.stderr))\n"
        "LARGE = ('torch', 'onnx', 'pandas', 'sacrebleu', 'pydantic', 'typer', 'rich', 'sentencepiece')\n"
        f"sys.argv = ['seqloom', 'predict', {str(folders[engine])!r}, '--beam-size', '2']\n"
        "from seqloom.cli.main import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], input="123\n", capture_output=True, text=True, check=True)
    assert done.stdout.strip()
    assert done.stderr.strip() == "[]"
