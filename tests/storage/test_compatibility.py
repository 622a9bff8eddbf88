"""Runs that earlier code wrote are read by today's and answer as they did. stored_runs/make.py made them."""

import json
from pathlib import Path

import pytest

import seqloom
from seqloom.storage.run import FORMAT
from tests.storage.stored_runs.make import WORDS, answers

STORED = sorted((Path(__file__).parent / "stored_runs").glob("format_*"))


@pytest.fixture(params=STORED, ids=lambda path: path.name)
def stored(request):
    return request.param


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_there_is_a_stored_run_of_todays_format_and_of_every_one_before():
    formats = [json.loads((path / "format.json").read_bytes())["format"] for path in STORED]
    assert sorted(formats) == list(range(1, FORMAT + 1)), "a new format needs a stored run: see stored_runs/make.py"


def test_a_stored_run_answers_as_it_did_and_reading_leaves_it_alone(stored):
    before = contents(stored)
    expected, found = json.loads(before["answers.json"]), answers(stored)
    assert contents(stored) == before
    assert len(found["outputs"]) == len(expected["asked"]) > 0
    for ours, theirs in zip(found["outputs"], expected["outputs"], strict=True):
        assert [one["text"] for one in ours] == [one["text"] for one in theirs]
        assert [one["score"] for one in ours] == pytest.approx([one["score"] for one in theirs], rel=2e-6, abs=1e-5)
        for one, other in zip(ours, theirs, strict=True):
            assert one["log_probs"] == pytest.approx(other["log_probs"], rel=2e-6, abs=1e-5)
    assert found["scores"] == pytest.approx(expected["scores"], rel=2e-6, abs=1e-5)


def test_a_stored_run_has_learned_what_it_was_taught(stored):
    """Else answers could agree by saying nothing."""
    assert seqloom.load(stored, device="cpu").predict(WORDS, n_best=1) == [word[::-1] for word in WORDS]
