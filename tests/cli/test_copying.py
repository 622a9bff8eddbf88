"""Words that the vocabulary lacks, on the command line: copied, or replaced by what was looked at."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import seqloom
from seqloom.data.codecs.copying import Copying
from seqloom.data.codecs.text import Text
from seqloom.data.special_tokens import UNK
from seqloom.errors import SeqloomError
from seqloom.inference.find import with_copies
from seqloom.types import Hypothesis
from tests.cli.conftest import LANGUAGE_MODEL, RECURRENT, Command, Outcome, toml, tsv, written

WORDS = {"type": "text", "units": "word", "size": 4}
ATTENTION = {"type": "additive", "size": 8}
ROWS = [(f"see n{number} now", f"SEE n{number} NOW") for number in range(60)]


def recipe(**changes: Any) -> dict[str, Any]:
    return {
        "search": {"type": "beam", "beam_size": 2},
        "task": {"source": WORDS, "target": WORDS, "copy": True, "metrics": ["exact", "copy_recall"]},
        "encoder": RECURRENT,
        "decoder": {"type": "copy", "attention": ATTENTION, "decoder": RECURRENT},
        "train": {"tokens": 256, "steps": 60, "validate_every": 60, "learning_rate": 0.02, "device": "cpu"},
    } | changes


def plain(**changes: Any) -> dict[str, Any]:
    task = {"source": WORDS, "target": WORDS, "metrics": ["exact", "copy_recall"]}
    return recipe(**{"task": task, "decoder": {**RECURRENT, "attention": ATTENTION}} | changes)


def fine(outcome: Outcome) -> Outcome:
    assert outcome.code == 0, outcome.err
    return outcome


def trained(command: Command, table: dict[str, Any], out: str = "out") -> Path:
    fine(command("train", toml(table), "--data", tsv(rows=ROWS), "--out", out))
    return Path(out)


def test_a_run_that_copies_predicts_measures_explains_and_comes_back(command: Command) -> None:
    run = trained(command, recipe())
    found = fine(command("predict", run, "--json", stdin="see Zork now\n")).out
    best = json.loads(found)["outputs"][0]
    assert best["text"] == " ".join(best["tokens"])
    assert "Zork" in best["text"]
    measured = json.loads(fine(command("evaluate", run, "--data", tsv(rows=[("see Zork now", "SEE Zork NOW")]))).out)
    assert measured["copy_recall"] == 100
    told = fine(command("explain", run, "see Zork now", "--out", "page.html")).out
    assert "Zork" in told
    assert "copying:" in told
    assert "Zork" in Path("page.html").read_text()
    model = seqloom.load("out")
    assert model.predict(["see Zork now"]) == [best["text"]]
    copied, unknown = model.score([("see Zork now", "SEE Zork NOW"), ("see Quux now", "SEE Zork NOW")])  # type: ignore[attr-defined]
    assert copied > unknown


def test_unknown_words_are_replaced_on_request_only(command: Command) -> None:
    run = trained(command, plain())
    without = fine(command("predict", run, stdin="see Zork now\n")).out
    assert "Zork" not in without
    assert "⁇" not in without
    model = seqloom.load("out")
    words = {"SEE", "NOW", "see", "Zork", "now", "n0", "n1", "n10", "n11"}
    (found,) = model.candidates(["see Zork now"], replace_unknown=True)
    assert found[0].attention is None
    assert set(found[0].text.split()) <= words | {"n" + str(number) for number in range(60)}
    assert json.loads(fine(command("evaluate", run, "--replace-unknown", "--data", tsv(rows=ROWS))).out)
    fine(command("export", run, "--to", "onnx", "--out", "exported"))
    asked = ("predict", "--replace-unknown")
    ours, theirs = (fine(command(*asked, where, stdin="see Zork now\n")).out for where in (run, "exported"))
    assert ours == theirs


def test_what_was_looked_at_most_stands_for_what_is_unknown() -> None:
    codec = Copying(codec=Text(units="word", size=3).fit(["i am here"]))
    looks = [[0.1, 0.8, 0.1], [0.5, 0.2, 0.3], [0.0, 0.1, 0.9], [1.0, 0.0, 0.0]]
    (known,) = codec.encode("am").tolist()
    found = with_copies(Hypothesis([UNK, known, UNK], 0.0, [], looks), codec, 3, False)
    assert codec.decode(np.array(found.tokens), "Il est Zork") == "est am Zork"
    with pytest.raises(SeqloomError, match="no attention to its source"):
        with_copies(Hypothesis([UNK], 0.0, []), codec, 3, False)
    with pytest.raises(SeqloomError, match="one state per token"):
        with_copies(Hypothesis([UNK], 0.0, [], looks), codec, 6, False)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (recipe(decoder={**RECURRENT, "attention": ATTENTION}), 'set decoder.type = "copy"'),
        (plain(decoder={"type": "copy"}), "needs task.copy = true"),
        (
            recipe(task={"source": {**WORDS, "units": "bpe"}, "target": WORDS, "copy": True}),
            'units = "bpe" has no unknown words to copy; expected text of units "word" or "char"',
        ),
        (
            recipe(objective={"type": "cross_entropy", "costs": {"coverage": 1.0}}),
            "no part of this model has such a cost",
        ),
        (recipe(decoder={"type": "copy", "decoder": {"type": "transducer"}}), "decoder"),
        (recipe(decoder={"type": "copy", "decoder": {"type": "copy"}}), "must write token by token"),
        (
            recipe(encoder={"type": "pyramidal", "embedding_size": 8, "size": 8, "layers": 2}),
            'decoder.type = "copy": needs one encoder state per token, but this encoder makes 50 of 100 tokens',
        ),
    ],
)
def test_a_mistake_is_one_line(command: Command, table: dict[str, Any], message: str) -> None:
    complaint = command("train", toml(table), "--data", tsv(rows=ROWS), "--out", "out")
    assert message in complaint.err.splitlines()[-1]
    assert complaint.code == 2


def test_runs_copy_together(command: Command) -> None:
    both = [trained(command, recipe(seed=seed), f"out{seed}") for seed in (1, 2)]
    asked = "see Zork now\nsee Quux\n"
    assert "Zork" in fine(command("predict", *both, stdin=asked)).out
    one, mean = (fine(command("predict", *runs, "--json", "--attention", stdin=asked)).out for runs in (both[:1], both))
    assert one != mean
    assert (
        fine(command("predict", both[0], both[0], stdin=asked)).out
        == fine(command("predict", both[0], stdin=asked)).out
    )
    other = recipe(task=recipe()["task"] | {"source": {**WORDS, "size": WORDS["size"] - 1}})
    complaint = command("predict", both[0], trained(command, other, "other"), stdin=asked).complaint
    assert "read it alike" in complaint


def test_what_cannot_be_replaced_is_said(command: Command, translator: Path) -> None:
    run = trained(command, plain(decoder=RECURRENT))
    assert "has no attention to its source" in command("predict", run, "--replace-unknown", stdin="see\n").complaint
    copies = trained(command, recipe(), "copies")
    assert "copies words by itself" in command("predict", copies, "--replace-unknown", stdin="see\n").complaint
    assert "wait = 1" in command("predict", copies, "--wait", 1, stdin="see\n").complaint
    assert "never seen" not in command("predict", copies, stdin="see Quux\n").err
    text = LANGUAGE_MODEL | {"task": {"target": WORDS}}
    lines = written("lines.txt", "".join(f"{target}\n" for _, target in ROWS))
    fine(command("train", toml(text), "--data", lines, "--out", "text"))
    assert "does not support --lm" in command("predict", copies, "--lm", "text", stdin="see\n").complaint
