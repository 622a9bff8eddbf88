"""Benchmarks that need no peers run; what they report is what was measured."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from bench import (
    bert,
    captions,
    conv_s2s,
    experts,
    gates,
    lattice,
    lips,
    measuring,
    objectives,
    pairs,
    pixels,
    pointer,
    stream,
    waves,
)
from bench.batches import Batches
from bench.page import write_page
from bench.pipe import HOME, Worker
from bench.scale import exponent
from bench.shapes import BOS, EOS, SHAPES
from bench.workers import loop
from seqloom.config.build import build_model, build_task
from seqloom.config.complete import complete
from seqloom.config.recipes import override, read_recipe
from seqloom.data import batching
from seqloom.inference.system import System
from seqloom.predictor import Predictor
from tests.building import objectives_of_any_decoder


def run(name: str, *words: str, cache: Path) -> dict[str, object]:
    out = cache / f"bench-{name}.json"
    environment = {**os.environ, "SEQLOOM_CACHE": str(cache), "SEQLOOM_DATA": "", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", f"bench.{name}", "--quick", "--out", str(out), *words]
    subprocess.run(command, cwd=HOME, env=environment, check=True, capture_output=True, timeout=300)
    return json.loads(out.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def data(cache: Path) -> pairs.Prepared:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEQLOOM_CACHE", str(cache))
        patch.setenv("SEQLOOM_DATA", "")
        return pairs.prepare(quick=True)


def test_training_is_measured_against_the_bare_loop(cache: Path) -> None:
    record = run("train", "--peers", "none", "--models", "lstm", cache=cache)
    rows = gates.rows_by_system(record["rows"], model="lstm")  # type: ignore[arg-type]
    assert set(rows) == {"bare loop", "Seqloom"}, record["rows"]
    assert rows["bare loop"]["ratio"] == 1
    for row in rows.values():
        assert row["speed"]["median"] > 0
        assert 5 < row["loss"] < 9  # about log 1000: nothing is learned in two updates, and nothing is broken


def test_decoding_is_measured_and_every_output_has_the_required_length(cache: Path) -> None:
    record = run("decode", "--peers", "none", "--models", "transformer", cache=cache)
    assert not [row for row in record["rows"] if "failed" in row]  # type: ignore[attr-defined]
    assert {row["system"] for row in record["rows"]} == {"bare loop with a cache", "Seqloom"}  # type: ignore[attr-defined]
    assert [row["produced"] for row in record["growth"]] == [8, 24] * 2  # type: ignore[attr-defined]


def test_growth_is_measured_without_a_corpus(cache: Path) -> None:
    record = run("scale", "--pairs", cache=cache)
    names = [each["name"] for each in record["sweeps"]]  # type: ignore[attr-defined]
    assert names == ["vocabulary", "length", "batch", "beam", "width"]


def test_an_exponent_is_the_power_that_made_the_times() -> None:
    assert exponent((1, 2, 4, 8), [3.0 * size**1.5 for size in (1, 2, 4, 8)]) == pytest.approx(1.5)


def test_batches_travel_whole(data: pairs.Prepared, tmp_path: Path) -> None:
    lengths = np.asarray(data.corpus.lengths)
    plan = batching.plan(lengths, 512, seed=1, epoch=0)
    plan = batching.Plan(plan.rows, plan.offsets[:3])
    pairs.write_batches(data.corpus, plan, tmp_path / "batches.npz")
    batches = Batches(tmp_path / "batches.npz")
    for number, batch in enumerate(batches):
        for row, place in enumerate(plan[number]):
            source, target = (np.asarray(side).tolist() for side in data.corpus[int(place)])
            assert batch.source[row, : batch.source_lengths[row]].tolist() == source
            assert batch.inputs[row, : batch.target_lengths[row]].tolist() == [BOS, *target]
            assert batch.targets[row, : batch.target_lengths[row]].tolist() == [*target, EOS]
    assert batches.tokens == sum(batch.tokens for batch in batches)


def test_generated_pairs_have_the_lengths_of_captions(data: pairs.Prepared) -> None:
    lengths = np.asarray(data.corpus.lengths)
    assert 11 < lengths.mean() < 16
    assert 0.7 < np.corrcoef(np.log(lengths.T))[0, 1] < 0.9
    plan = batching.plan(lengths, 512, seed=1, epoch=0)
    assert 0 < pairs.padding(data.corpus, plan) < 0.3


def test_a_worker_that_fails_has_a_reason() -> None:
    worker = Worker("bare", {"task": "sing", "shape": SHAPES["lstm"]})
    assert worker.ready is None
    assert worker.reason == "this system has no task sing"
    assert worker.turn() is None
    worker.close()


def test_outputs_of_another_length_are_refused() -> None:
    loop.check([14, 15, 16], 3, 15)
    with pytest.raises(RuntimeError, match="10 to 15 tokens, expected 15"):
        loop.check([15, 10], 2, 15)
    with pytest.raises(RuntimeError):
        loop.check([15], 2, 15)


def test_a_summary_is_a_median_with_its_spread() -> None:
    assert measuring.summary([3.0, 1.0, 2.0]) == {"median": 2.0, "lowest": 1.0, "highest": 3.0}


def test_the_page_prints_gates_that_were_not_met(tmp_path: Path) -> None:
    figure = {"median": 100.0, "lowest": 90.0, "highest": 110.0}
    row = {"model": "transformer", "speed": figure, "processor_ratio": 1.0, "megabytes": 10, "loss": 9.0}
    rows = [
        {**row, "system": "bare loop", "ratio": 1.0},
        {**row, "system": "Seqloom", "ratio": 1.1},
        {"model": "transformer", "system": "eole", "failed": "it will not"},
    ]
    result = measuring.record("train", 1, data="pairs", vocabulary=8000, padding=0.02, batches=1, rounds=1, rows=rows)
    measuring.write(result, tmp_path / "results" / "bench-train-1.json")
    write_page(tmp_path)
    page = (tmp_path / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert "speed, relative to the bare loop >= 1.15: **not met** (1.1)" in page
    assert "share of padding in the batches <= 0.05: met (0.02)" in page
    assert "| eole | failed: it will not |" in page
    assert (tmp_path / "docs" / "images" / "bench-train-1.svg").exists()


def test_every_objective_that_compares_tokens_has_its_cost_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = {type(objective) for objective, _, _ in objectives.objectives().values()}
    others = {"marginal", "wait_k"}  # of these decoders they are cross-entropy
    found = {name: type(objective) for name, objective in objectives_of_any_decoder().items()}
    assert measured == {part for name, part in found.items() if name not in others}
    monkeypatch.setattr(objectives, "WARMING", 0)
    monkeypatch.setattr(objectives, "ROWS", 2)
    found = objectives.measure(objectives.models()["recurrent"], objectives.batch(), 1)
    assert found["cross-entropy"]["multiple"] == found["cross-entropy"]["expected"] == 1
    assert all(each["multiple"] > 0 for each in found.values())
    record = measuring.record("objectives", 1, shape="small", repeats=1, models={"recurrent": found})
    measuring.write(record, tmp_path / "results" / "bench-objectives.json")
    write_page(tmp_path)
    assert "| MIXER, all tokens |" in (tmp_path / "docs" / "benchmarks.md").read_text(encoding="utf-8")


def test_ways_through_a_lattice_agree_and_their_costs_are_on_the_page(tmp_path: Path) -> None:
    assert lattice.difference(lattice.Shape(2, 7, 3, 5)) < 1e-12
    found = lattice.measure(lattice.Shape(2, 7, 3, 5), 1)
    assert all(spent > 0 for each in found.values() for spent in each)
    assert lattice.megabytes("ours", lattice.Shape(4, 100, 49, 128)) == pytest.approx(10.2, rel=0.3)  # its gradient
    figures = {"milliseconds": measuring.summary([1.0]), "ratio": 0.7, "megabytes": 1.0}
    grown = {"name": "T", "values": [1, 2], "system": "ours", "milliseconds": [1.0, 2.0], "megabytes": [1.0, 2.0]}
    grown |= {"time_exponent": 1.0, "memory_exponent": 1.0}
    record = measuring.record("lattice", 1, shape="T = 1", difference=0.0, systems={"ours": figures}, growth=[grown])
    measuring.write(record, tmp_path / "results" / "bench-lattice.json")
    write_page(tmp_path)
    page = (tmp_path / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert "time, relative to autograd <= 0.6: **not met** (0.7)" in page
    assert "| T = 1, 2 | ours | 1, 2 | 1.00 | 1, 2 | 1.00 |" in page


def test_what_pointing_costs_is_on_the_page(tmp_path: Path) -> None:
    batch = pointer.hulls(points=6, rows=4)
    assert batch.source is not None
    assert batch.source.values.shape == (4, 6, 2)
    found = pointer.compare(batch, 1, size=4)
    assert found["nn.LSTM, twice"]["ratio"] == 1
    assert found["pointer network"]["examples_per_second"] > 0
    found["pointer network"]["ratio"] = 0.4
    measuring.write(
        measuring.record("pointer", 1, shape="6 points", systems=found), tmp_path / "results" / "bench-pointer.json"
    )
    write_page(tmp_path)
    page = (tmp_path / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert "speed, relative to the recurrence alone >= 0.5: **not met** (0.4)" in page


def test_what_experts_cost_is_on_the_page(tmp_path: Path) -> None:
    found = experts.compare(16, 4, 6, 1, experts=3, active=2)
    assert found["feed-forward"]["ratio"] == 1
    assert set(found) == {"feed-forward", "experts", "experts, dense dispatch"}
    assert found["experts"]["milliseconds"]["median"] > 0
    found["experts"]["ratio"] = 2.5
    record = measuring.record("experts", 1, shape="16 tokens", hidden={"6": found})
    measuring.write(record, tmp_path / "results" / "bench-experts.json")
    write_page(tmp_path)
    page = (tmp_path / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert "time, relative to a feed-forward layer, experts of 6 <= 2: **not met** (2.5)" in page


def test_dense_dispatch_computes_the_same_as_sparse() -> None:
    made, values = experts.systems(4, 6, 3, 3), torch.randn(5, 4)
    torch.manual_seed(2)
    dense = made["experts, dense dispatch"](values)
    torch.manual_seed(2)
    assert made["experts"](values).item() >= dense.item() - 1e-4  # and the costs, which are not negative


def test_the_bare_conv_s2s_is_ours_and_their_speeds_are_on_the_page(tmp_path: Path) -> None:
    batch = conv_s2s.random_batch(rows=3, length=6, words=20)
    ours, bare = conv_s2s.models(words=20, size=8)
    assert batch.source is not None
    expected = ours.eval()(batch).scores[batch.targets.mask]
    found = bare.eval()(batch.source.values, batch.inputs.values)[batch.targets.mask]
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
    both = conv_s2s.decodings(batch, ours, bare, 5)
    assert both["Seqloom"]() == both[conv_s2s.UNIT]()
    settings = {"training": conv_s2s.compare(conv_s2s.updates(batch, *conv_s2s.models(20, 8)), 18, 1)}
    assert settings["training"][conv_s2s.UNIT]["ratio"] == 1
    settings["training"]["Seqloom"]["ratio"] = 0.8
    record = measuring.record("conv_s2s", 1, shape="small", settings=settings)
    measuring.write(record, tmp_path / "results" / "bench-conv-s2s.json")
    write_page(tmp_path)
    page = (tmp_path / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert "speed, relative to the bare loop, training >= 1: **not met** (0.8)" in page


def test_the_bare_captions_are_ours_and_their_speeds_are_on_the_page(tmp_path: Path) -> None:
    batch = captions.random_batch((16, 16, 3), rows=3, words=20)
    ours, bare = captions.models((16, 16, 3), words=20)
    assert batch.source is not None
    expected = ours.eval()(batch).scores[batch.targets.mask]
    found = bare.eval()(batch.source.values, batch.inputs.values)[batch.targets.mask]
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
    measured = conv_s2s.compare(captions.updates(batch, ours, bare), 3, 1, "pictures")
    measured["Seqloom"]["ratio"] = 1.5
    record = measuring.record("captions", 1, shape="small", settings={"training": measured})
    measuring.write(record, tmp_path / "results" / "bench-captions.json")
    write_page(tmp_path)
    page = (tmp_path / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert "pictures/s" in page
    assert "speed, relative to the bare loop, training >= 1: met (1.5)" in page


def test_the_bare_lip_reader_is_ours() -> None:
    batch = lips.random_batch(rows=3, frames=9)
    ours, bare = lips.models()
    assert batch.source is not None
    expected = ours.eval()(batch).scores[batch.targets.mask]
    given = (batch.source.values, batch.source.parts["sound"].values, batch.inputs.values)
    torch.testing.assert_close(bare.eval()(*given)[batch.targets.mask], expected, atol=1e-5, rtol=1e-4)
    measured = conv_s2s.compare(captions.updates(batch, ours, bare), 27, 1, "frames")
    assert measured["Seqloom"]["ratio"] > 0


def test_the_bare_model_of_pixels_is_ours_and_draws_far_slower(tmp_path: Path) -> None:
    batch = pixels.random_batch(rows=2, side=6)
    ours, bare = pixels.models(side=6, layers=3)
    expected = ours.eval()(batch).scores
    torch.testing.assert_close(bare.eval()(batch.inputs.values), expected, atol=1e-5, rtol=1e-4)
    measured = conv_s2s.compare(captions.updates(batch, ours, bare), 2, 1, "pictures")
    drawn = pixels.drawing(ours.eval(), bare.eval(), 1)
    record = measuring.record("pixels", 1, shape="small", settings={"training": measured, "drawing": drawn})
    measuring.write(record, tmp_path / "results" / "bench-pixels.json")
    write_page(tmp_path)
    page = (tmp_path / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert "speed, relative to the bare loop, drawing >= 50: " in page


def test_a_sample_of_a_wavenet_costs_the_same_early_and_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(waves.drawn(waves.model(), 2, rate=5)) == 2
    monkeypatch.setattr(waves, "drawn", lambda decoder, seconds: [100.0] * 6 + [104.0] * 2)
    out = tmp_path / "results" / "bench-waves.json"
    monkeypatch.setattr(sys, "argv", ["waves.py", "--out", str(out)])
    waves.main()
    write_page(tmp_path)
    page = (tmp_path / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert "time per sample in the last quarter, relative to the first <= 1.1: met (1.04)" in page


def test_pre_training_is_compared_on_the_same_batch(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    codec, batch = bert.batch_of_text(tokens=300, words=50)
    systems = conv_s2s.compare(bert.updates(bert.ours(codec), bert.theirs(codec), batch), 300, 1)
    systems["transformers"] = systems.pop(conv_s2s.UNIT)
    record = measuring.record("bert", 1, shape="small", settings={"pre-training": systems})
    measuring.write(record, tmp_path / "results" / "bench-bert.json")
    write_page(tmp_path)
    page = (tmp_path / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert "speed, relative to transformers, pre-training >= 1.2: " in page


def test_a_recorded_command_names_no_place_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["train.py", "--threads", "2", "--out", "/home/me/x.json", "--quick"])
    assert measuring.record("train", 2)["command"] == "python -m bench.train --threads 2 --quick"


def test_a_stream_is_measured_minute_by_minute_and_shown_on_the_page(tmp_path: Path) -> None:
    soundfile = pytest.importorskip("soundfile")
    chance = np.random.default_rng(1)
    for number in range(2):
        soundfile.write(tmp_path / f"{number}.wav", chance.normal(0, 0.1, 8000), 8000)
    table = tmp_path / "sounds.tsv"
    table.write_text("0.wav\tone two\n1.wav\ttwo\n")
    recipe = override(read_recipe("speech-ctc"), ["encoder.size=4", "encoder.embedding_size=4", "encoder.layers=1"])
    full = complete(recipe, "test")
    task = build_task(full)
    assert task.source is not None
    task.source.fit([str(tmp_path / "0.wav")])
    task.target.fit(["one two"])
    model = Predictor(System(build_model(full, task.source, task.target), task, full))
    rows = stream.measure(model, table, 5, minute=1.0, beam_size=2)
    assert len(rows) == 5
    assert all(row["seconds"] > 0 and row["megabytes"] > 0 for row in rows)
    measuring.write(stream.summarise(model, 2, rows), tmp_path / "results" / "bench-stream.json")
    write_page(tmp_path)
    page = (tmp_path / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert "Spoken digits for 5 minutes" in page
    assert "time for a minute of the last quarter" in page
