"""Masked words from the shell and from Python: training on a text, finding words, measuring, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

import seqloom
from seqloom.errors import SeqloomError
from tests.cli.conftest import Command, tsv, written
from tests.cli.test_use import fine, sets

SMALL = ["task.source.size=60", "task.source.units=word", "task.window=24", "encoder.size=8", "encoder.heads=2"]
SMALL += ["encoder.layers=1", "encoder.hidden=16", "train.tokens=400", "train.steps=4", "train.warmup=1"]


def text(documents: int = 8) -> str:
    return "\n\n".join(
        "\n".join(f"doc {number} line {line} says w{line}" for line in range(5)) for number in range(documents)
    )


@pytest.fixture
def run(command: Command) -> str:
    fine(command("train", "bert", "--data", written("text.txt", text() + "\n"), "--out", "run", *sets(*SMALL)))
    return "run"


def test_words_are_found_in_the_shell_and_in_python(command: Command, run: str) -> None:
    said = fine(command("fill", run, "doc 3 [MASK] 2 says [MASK]", "--n-best", 2)).out.splitlines()
    found = seqloom.load(run).fill("doc 3 [MASK] 2 says [MASK]", n_best=2)
    assert said[0] == found.text
    assert [line.split()[0] for line in said[1:]] == ["1.", "2."]
    assert said[1].split()[1] == found.candidates[0][0][0]
    lines = fine(command("fill", run, "--json", stdin="doc [MASK]\n[MASK] says\n")).out.splitlines()
    assert [json.loads(line)["text"].count(" ") for line in lines] == [1, 1]
    assert len(json.loads(lines[0])["candidates"][0]) == 5


def test_a_text_is_measured(command: Command, run: str) -> None:
    measured = json.loads(fine(command("evaluate", run, "--data", "text.txt")).out)
    assert set(measured) == {"examples", "masked_accuracy", "masked_perplexity", "pair_accuracy"}
    assert 0 <= measured["masked_accuracy"] <= 100
    assert seqloom.load(run).evaluate("text.txt")["pair_accuracy"] == pytest.approx(measured["pair_accuracy"])


def test_without_empty_lines_it_is_said_that_there_are_no_pairs(command: Command) -> None:
    data = written("one.txt", text(1) + "\n")
    said = fine(command("train", "bert", "--data", data, "--out", "one", *sets(*SMALL))).err
    assert "no next-sentence prediction: separate documents by an empty line" in said
    assert "pair_accuracy" not in json.loads(fine(command("evaluate", "one", "--data", data)).out)


@pytest.mark.parametrize("verb", ["predict", "score", "generate", "explain"])
def test_what_it_cannot_do_is_one_line(command: Command, run: str, verb: str) -> None:
    options = {"score": ["--data", "text.txt"], "explain": ["doc 1"]}.get(verb, [])
    assert "this run finds masked words" in command(verb, run, *options, stdin="doc 1\n").complaint


def test_lines_become_vectors_and_the_nearest_are_found(command: Command, run: str) -> None:
    lines = ["doc 1 line 2", "doc 2 says w1", "w3 w4"]
    said = fine(command("embed", run, "--out", "vectors.npy", stdin="\n".join(lines) + "\n")).err
    assert "vectors.npy has 3 vectors of 8 components." in said
    model = seqloom.load(run)
    np.testing.assert_allclose(np.load("vectors.npy"), model.embed(lines), rtol=1e-5)
    data = written("lines.txt", "\n".join([*lines, "", "doc 7"]) + "\n")
    found = fine(command("similar", run, "w3 w4", "--data", data, "--n-best", 2)).out.splitlines()
    assert found[0] == " 1.0000  w3 w4"
    assert len(found) == 2
    (first, number), *_ = model.similar("w3 w4", lines)
    assert (number, first) == (2, pytest.approx(1, abs=1e-5))
    both = fine(command("similar", run, "--data", data, "--n-best", 1, stdin="doc 7\nw3 w4\n")).out.splitlines()
    assert both == ["doc 7", " 1.0000  doc 7", "w3 w4", " 1.0000  w3 w4"]


def test_any_run_with_an_encoder_has_vectors(command: Command) -> None:
    fine(command("train", "scan-lstm", "--data", tsv(), "--out", "pairs", *sets("train.steps=1")))
    model = seqloom.load("pairs")
    assert model.embed(["1 2 3", "4"]).shape == (2, model.model.encoder.output_size)
    data = written("text.txt", text())
    fine(command("train", "char-lm", "--data", data, "--out", "lm", *sets("train.steps=1")))
    assert "this run reads no source" in command("embed", "lm", "--out", "v.npy", stdin="a\n").complaint
    assert "source 2 is empty" in command("embed", "pairs", "--out", "v.npy", stdin="1\n\n2\n").complaint
    assert "expected a name that ends with .npy" in command("embed", "pairs", "--out", "v.txt", stdin="1\n").complaint
    assert "no lines" in command("similar", "pairs", "1", "--data", written("empty.txt", "\n")).complaint
    assert "such pooling" in command("embed", "pairs", "--out", "v.npy", "--pooling", "sum", stdin="1\n").complaint


def test_mistakes_are_one_line(command: Command, run: str) -> None:
    assert "has no [MASK]" in command("fill", run, "doc 1").complaint
    fine(command("train", "scan-lstm", "--data", tsv(), "--out", "pairs", *sets("train.steps=1")))
    assert 'task.type = "masked"' in command("fill", "pairs", "a [MASK]").complaint
    assert "task.source.mask = true" in command("check", "bert", *sets("task.source.mask=false")).complaint
    wide = command("train", "bert", "--data", "text.txt", "--out", "wide", *sets(*SMALL, "task.window=200")).complaint
    assert "longest" in wide
    with pytest.raises(SeqloomError, match="n_best"):
        seqloom.load(run).fill("[MASK]", n_best=0)
