"""Labels and tags on the command line: chosen, trained, evaluated, drawn, explained, refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command, trained, tsv, written
from tests.cli.test_use import fine, sets

SMALL = {"type": "recurrent", "embedding_size": 8, "size": 8, "bidirectional": True}
LABELLED = [(f"it is {word} {number}", f"very {word}") for number in range(30) for word in ("good", "bad")]
TAGGED = [(f"the {number} dogs bark", "B-NP I-NP I-NP B-VP") for number in range(60)]


def recipe(task: str, decoder: str, units: str, metrics: list[str]) -> dict[str, object]:
    return {
        "task": {
            "type": task,
            "source": {"type": "words"},
            "target": {"type": "text", "units": units},
            "metrics": metrics,
        },
        "encoder": {"type": "spelling", "embedding_size": 8, "spelling_size": 8, "buckets": 50, "encoder": SMALL},
        "decoder": {"type": decoder},
        "train": {"tokens": 256, "steps": 60, "learning_rate": 0.02, "device": "cpu"},
    }


@pytest.fixture(scope="session")
def labels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = recipe("answer", "label", "line", ["accuracy", "macro_f1"])
    made["decoder"] = {"type": "label", "pooling": "attention"}
    return trained(tmp_path_factory.mktemp("labels"), made, LABELLED)


@pytest.fixture(scope="session")
def tags(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = recipe("tagging", "tags", "word", ["chunk_f1", "tag_accuracy"])
    made["decoder"] = {"type": "tags", "crf": True}
    return trained(tmp_path_factory.mktemp("tags"), made, TAGGED)


@pytest.mark.parametrize(
    ("rows", "chosen"), [(LABELLED, "labels"), (TAGGED, "tags"), ([(a, b + " .") for a, b in TAGGED[:3]], "")]
)
def test_three_lines_say_what_was_seen_what_was_chosen_and_what_else_to_try(
    command: Command, rows: list[tuple[str, str]], chosen: str
) -> None:
    small = sets("encoder.embedding_size=8", "encoder.encoder.size=8", "train.steps=1") if chosen else []
    outcome = fine(command("train", "--data", tsv(rows=rows), "--out", "out", *small, *sets("train.steps=1")))
    saw, chose, alternative = outcome.err.splitlines()[:3]
    assert saw.startswith(f"Saw {len(rows)} pairs: ")
    assert chose.startswith(f"Chose the recipe {chosen}")
    assert alternative.startswith("Worth a try: ")


def test_labels_are_predicted_ranked_and_scored(command: Command, labels: Path) -> None:
    assert fine(command("predict", labels, stdin="it is good 3\n")).out == "very good\n"
    found = json.loads(fine(command("predict", labels, "--n-best", 5, stdin="it is bad 3\n")).out)["outputs"]
    assert [each["text"] for each in found] == ["very bad", "very good"]
    scored = fine(command("score", labels, "--data", tsv(rows=[("it is bad 3", "very bad")]))).out
    assert float(scored) == pytest.approx(found[0]["score"], abs=1e-4)
    assert fine(command("predict", labels, stdin="it is ungood 3\n")).out.startswith("very")


def test_a_confusion_matrix_is_drawn_and_the_metrics_stay(command: Command, labels: Path, tags: Path) -> None:
    for run, rows in ((labels, LABELLED), (tags, TAGGED)):
        plain = fine(command("evaluate", run, "--data", tsv(rows=rows))).out
        assert fine(command("evaluate", run, "--data", tsv(rows=rows), "--confusion", "seen.svg")).out == plain
        text = Path("seen.svg").read_text()
        assert "prediction" in text or "<path" in text
    assert json.loads(plain)["chunk_f1"] == 100


def test_a_confusion_matrix_of_texts_is_refused(command: Command, translator: Path, labels: Path) -> None:
    said = command("evaluate", translator, "--data", tsv(), "--confusion", "seen.png").complaint
    assert "runs that choose labels or tags" in said
    said = command("evaluate", labels, "--data", tsv(rows=LABELLED), "--confusion", "seen.doc").complaint
    assert "only .png and .svg can be written" in said
    assert not Path("seen.png").exists()


def test_labels_are_explained_by_their_probabilities_and_words(command: Command, labels: Path) -> None:
    said = fine(command("explain", labels, "it is good 3")).out
    assert "very␣good" in said
    assert "very␣bad" in said
    assert "alignment" in said
    assert "<unk>" not in said


def test_tags_are_explained_beside_their_words(command: Command, tags: Path) -> None:
    said = fine(command("explain", tags, "the 3 dogs bark")).out
    rows = [line.split()[:2] for line in said.splitlines() if "%" in line]
    assert rows == [["the", "B-NP"], ["3", "I-NP"], ["dogs", "I-NP"], ["bark", "B-VP"]]
    page = "page.html"
    fine(command("explain", tags, "the 3 dogs bark", "--out", page))
    assert '"per_token":true' in Path(page).read_text()


def test_a_tag_too_few_is_a_bad_line_with_both_counts(command: Command, tags: Path) -> None:
    data = written("bad.tsv", "the dogs\tB-NP I-NP\nthe dogs bark\tB-NP I-NP\n")
    said = command("evaluate", tags, "--data", data).complaint
    assert "line 2" in said
    assert "has 3 tokens, but its target 2 tags" in said
    said = fine(command("evaluate", tags, "--data", data, "--skip-bad"))
    assert json.loads(said.out)["examples"] == 1
    assert "n_best" in command("predict", tags, "--n-best", 2, stdin="the dogs\n").complaint


def test_parts_that_do_not_fit_say_so(command: Command) -> None:
    for changes, expected in (
        (["decoder=tags"], 'set task.type = "tagging"'),
        (['task.source={type="text", units="word"}'], 'set task.source.type = "words"'),
        (["encoder=recurrent"], 'take "spelling" around it'),
        (["encoder=memory_network"], 'set task.source.type = "story"'),
        (["decoder=recurrent"], 'take a head, such as "label" or "tags"'),
    ):
        assert expected in command("check", "labels", *sets(*changes)).complaint
    assert 'set task.type = "answer"' in command("check", "tags", *sets("decoder=label")).complaint
    pyramid = sets('encoder.encoder={type="pyramidal"}')
    assert "needs one encoder state per token" in command("check", "tags", *pyramid).complaint
    assert "a tag belongs to one word" in command("check", "tags", *sets("task.target.units=bpe")).complaint
