"""Pictures in, captions out: from generated scenes to a trained run, on the command line and in Python."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

import seqloom
from seqloom.errors import SeqloomError
from seqloom.train.display import Display
from tests.cli.conftest import Command, tsv
from tests.cli.test_use import captioned, fine, sets

SMALL = ["task.source.size=16", "task.source.shift=1", "encoder.size=8", "encoder.patch=2", "decoder.size=8"]
SMALL += ["decoder.embedding_size=8", "train.steps=3", "train.tokens=64", "train.decode=2"]
SIZE = (40, 24)


@pytest.fixture
def run(command: Command) -> str:
    fine(command("train", "captions-attention", "--data", captioned(), "--out", "run", *sets(*SMALL)))
    return "run"


def test_paths_arrays_and_images_are_captioned_alike(command: Command, run: str) -> None:
    names = [f"scenes/00000{number}.png" for number in range(3)]
    written = fine(command("predict", run, stdin="\n".join(names) + "\n")).out.splitlines()
    model = seqloom.load(run)
    images = [PIL.Image.open(name) for name in names]
    assert model.predict(names) == model.predict(images) == model.predict([np.asarray(each) for each in images])
    assert model.predict(names) == written
    assert model.predict([np.zeros((*SIZE, 3), dtype=np.uint8), np.zeros(SIZE, dtype=np.uint8)])
    assert len(model.score([(names[0], "a red circle"), (np.asarray(images[1]), "a blue square")])) == 2


def test_an_explanation_shows_the_picture_and_its_grid(command: Command, run: str) -> None:
    said = fine(command("explain", run, "scenes/000001.png", "--out", "page.html")).out
    assert "attention over the picture" in said
    assert "data:image/png;base64," in Path("page.html").read_text()
    model = seqloom.load(run)
    explained = model.explain(np.zeros((*SIZE, 3), dtype=np.uint8))
    assert explained.source_text == "(a picture, read as 16 x 16 pixels)"
    assert len(explained.source) == 16
    assert all(sum(row) == pytest.approx(1, abs=1e-4) for row in explained.attention)


def test_several_captions_of_a_picture_are_its_references(command: Command, run: str) -> None:
    rows = [(f"scenes/00000{number}.png", caption) for caption in ("a b", "c d", "e f") for number in range(4)]
    measured = json.loads(fine(command("evaluate", run, "--data", tsv("several.tsv", rows))).out)
    del measured["examples"]
    arrays = [(np.asarray(PIL.Image.open(name)), caption) for name, caption in rows]
    assert seqloom.load(run).evaluate(arrays) == pytest.approx(measured, abs=1e-3)
    model = seqloom.load(run)
    assert len(model.systems[""].task.references(model.examples(arrays))[0]) == 4


def test_python_trains_on_arrays() -> None:
    random = np.random.default_rng(1)
    pairs = [(random.integers(0, 256, (*SIZE, 3), dtype=np.uint8), f"word {number % 5}") for number in range(20)]
    pairs += [(picture, "another caption") for picture, _ in pairs[:10]]
    model = seqloom.fit(pairs, "captions-first", out="arrays", settings=SMALL, display=Display.quiet())
    assert len(model.predict([picture for picture, _ in pairs[:3]])) == 3


def test_a_bad_picture_is_one_line_and_can_be_skipped(command: Command) -> None:
    table = captioned()
    Path("scenes/000004.png").write_bytes(Path("scenes/000004.png").read_bytes()[:300])
    outcome = command("train", "captions-start", "--data", table, "--out", "run", *sets(*SMALL))
    assert outcome.code != 0
    assert "scenes.tsv, line 5: " in outcome.err
    assert "000004.png is not a readable picture" in outcome.err
    assert len(outcome.err.strip().splitlines()) == 1
    assert not Path("run").exists()
    outcome = fine(command("train", "captions-start", "--data", table, "--out", "run", "--skip-bad", *sets(*SMALL)))
    assert "Skipped 1 training line: 1 x unreadable source (first at line 5)." in outcome.err + outcome.out
    with pytest.raises(SeqloomError, match="there is no such file") as caught:
        seqloom.load("run").predict(["nowhere.png"])
    assert len(str(caught.value).splitlines()) == 1


def test_an_export_of_a_model_that_reads_pictures_is_refused_in_one_line(command: Command, run: str) -> None:
    for engine in ("onnx", "ctranslate2"):
        outcome = command("export", run, "--to", engine, "--out", "exported")
        assert outcome.code != 0
        assert len(outcome.err.strip().splitlines()) == 1
        assert "internal error" not in outcome.err
        assert not Path("exported").exists()
