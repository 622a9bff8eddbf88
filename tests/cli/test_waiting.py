"""Writing while reading, in use: --wait, latency in evaluations, and an agent that starts from a translator."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
import torch

import seqloom
from seqloom.engines import export as exporting
from seqloom.errors import SeqloomError
from seqloom.inference import combined
from seqloom.storage.weights import read
from seqloom.train.display import Display
from tests.cli.conftest import TRANSLATOR, pairs, trained, tsv

LATENCY = ("average_proportion", "average_lagging", "consecutive_wait", "mean_delay")
AGENT: dict[str, Any] = {
    **TRANSLATOR,
    "objective": {"type": "read_write", "samples": 2},
    "search": {"type": "prefix_beam", "beam_size": 2},
    "decoder": {"type": "agent", "size": 8, "translator": TRANSLATOR["decoder"]},
    "train": {"tokens": 256, "steps": 3, "device": "cpu"},
}


def test_predictions_that_wait_say_how_much_had_been_read(command, translator):
    found = command("predict", translator, "--wait", 2, "--json", stdin="12345\n67\n")
    for line, length in zip(map(json.loads, found.out.splitlines()), (5, 2)):
        for one in line["outputs"]:
            assert one["times"] == [min(2 + place, length) for place in range(len(one["tokens"]))]
    usual = command("predict", translator, "--json", stdin="12345\n")
    assert json.loads(usual.out)["outputs"][0]["times"] is None
    patient = command("predict", translator, "--wait", 9, stdin="12345\n")
    assert patient.out == command("predict", translator, stdin="12345\n").out


def test_evaluations_that_wait_measure_latency(command, translator):
    data = tsv()
    found = json.loads(command("evaluate", translator, "--data", data, "--wait", 2).out)
    assert set(LATENCY) <= set(found)
    assert 0 < found["average_proportion"] <= 1
    assert not set(LATENCY) & set(json.loads(command("evaluate", translator, "--data", data).out))
    whole = seqloom.load(translator).evaluate(pairs(), wait=3)
    assert whole["average_proportion"] == 1
    assert whole["consecutive_wait"] == 3


def test_who_cannot_wait_says_why_in_one_line(command, translator, tmp_path):
    assert "--wait" in command("predict", translator, "--wait", 0).complaint
    recipe = copy.deepcopy(TRANSLATOR)
    recipe["encoder"] = {**recipe["encoder"], "bidirectional": True}
    recipe["train"] = {**recipe["train"], "steps": 1}
    both_ways = trained(tmp_path / "both-ways", recipe, pairs())
    complaint = command("predict", both_ways, "--wait", 2, stdin="123\n").complaint
    assert "encoder.bidirectional = false" in complaint
    exported = exporting.export(translator, "onnx", tmp_path / "onnx")
    assert "exported" in command("predict", exported, "--wait", 2, stdin="123\n").complaint
    with pytest.raises(SeqloomError, match="exported"):
        seqloom.load(exported).evaluate(pairs(), wait=2)


def test_an_agent_starts_from_a_translator_which_stays_as_it_is(translator, tmp_path):
    recipe = {**copy.deepcopy(AGENT), "init": str(translator)}
    seqloom.fit(pairs(), recipe, out=tmp_path / "agent", display=Display.quiet())
    before, after = read(translator / "model.safetensors"), read(tmp_path / "agent/model.safetensors")
    for name, weights in before.items():
        ours = name.replace("decoder.", "decoder.translator.") if name.startswith("decoder.") else name
        assert torch.equal(after[ours], weights)
    assert len(after) == len(before) + 4
    assert set(LATENCY) <= set(seqloom.load(tmp_path / "agent").evaluate(pairs()))
    again = {**copy.deepcopy(AGENT), "init": str(tmp_path / "agent")}
    seqloom.fit(pairs(), again, out=tmp_path / "further", display=Display.quiet())
    further = read(tmp_path / "further/model.safetensors")
    changed = {name for name, weights in after.items() if not torch.equal(further[name], weights)}
    assert changed == {name for name in after if name.startswith("decoder.policy.")}


def test_an_agent_must_not_see_what_it_has_not_read(tmp_path):
    recipe = copy.deepcopy(AGENT)
    recipe["encoder"] = {**recipe["encoder"], "bidirectional": True}
    with pytest.raises(SeqloomError, match="one way"):
        seqloom.fit(pairs(), recipe, out=tmp_path / "agent", display=Display.quiet())


def test_a_model_of_wait_k_is_validated_as_it_is_trained(tmp_path, monkeypatch):
    waits, made = [], combined.combine
    monkeypatch.setattr(
        combined, "combine", lambda *given, wait, **rest: waits.append(wait) or made(*given, wait=wait, **rest)
    )
    recipe = copy.deepcopy(TRANSLATOR)
    recipe["objective"] = {"type": "wait_k", "shortest": 2, "longest": 2}
    model = seqloom.fit(pairs(), recipe, out=tmp_path / "run", valid=pairs(20), display=Display.quiet())
    assert waits == [2, 2]  # validations
    assert model.summary is not None
    assert model.summary.best["cer"] == pytest.approx(model.evaluate(pairs(20), wait=2, beam_size=1)["cer"])


def test_a_stream_that_waits_ends_with_what_is_predicted(translator):
    model = seqloom.load(translator)
    for source in ("1", "12", "123456"):
        with model.stream(wait=2) as stream:
            for letter in source:
                stream.feed(letter)
        assert stream.close().final == model.predict([source], wait=2)[0]
