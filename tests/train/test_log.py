"""What a line of metrics.jsonl says: means over the updates since the line before, by hand."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from seqloom.config.settings import Settings
from seqloom.storage.history import Summary
from seqloom.train.log import Log
from seqloom.train.state import TrainingState
from tests.train.test_trainer import metrics, tiny_run, trainer


class Written:
    """A run and a display that keep what they are given."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self.updates: list[dict[str, Any]] = []
        self.remarks: list[str] = []
        self.path = SimpleNamespace(name="run")

    def log(self, line: dict[str, Any]) -> None:
        self.lines.append({name: value for name, value in line.items() if name != "seconds"})

    def update(self, **values: Any) -> None:
        self.updates.append(values)

    def say(self, line: str) -> None:
        self.remarks.append(line)

    end = say


@pytest.fixture
def written() -> Written:
    return Written()


def log_of(written: Written, **settings: Any) -> Log:
    batches: Any = SimpleNamespace(epochs=1.23456)
    made: Any = written
    return Log(made, made, Settings(log_every=2, **settings), TrainingState(), batches)


def step(log: Log, seconds: float, total: float, count: float, symbols: float, norm: float, **logs: float) -> None:
    log.state.step, log.state.seconds = log.state.step + 1, seconds
    log.update({"total": total, "count": count, "symbols": symbols, **logs}, 0.1 * log.state.step, norm)


def test_lines_are_means_over_what_was_counted_since_the_line_before(written: Written) -> None:
    log = log_of(written, clip=1.0)
    step(log, 10.0, total=6.0, count=3, symbols=5, norm=0.5, nll=3.0)
    assert not written.lines
    step(log, 12.0, total=2.0, count=1, symbols=7, norm=1.5, nll=9.0)
    step(log, 15.0, total=8.0, count=2, symbols=1, norm=1.0, nll=4.0)
    step(log, 20.0, total=1.0, count=2, symbols=9, norm=2.0, nll=2.0)
    first, second = written.lines
    assert first == {
        "kind": "train",
        "step": 2,
        "epoch": 1.2346,
        "loss": 2.0,
        "nll": 3.0,
        "clipped": 0.5,
        "learning_rate": pytest.approx(0.2),
        "gradient_norm": 1.5,
        "rate": 3.5,  # seven tokens in the two seconds since the first update
    }
    assert (second["loss"], second["nll"], second["clipped"]) == (2.25, 1.5, 0.5)  # a norm of 1 is not clipped
    assert second["rate"] == pytest.approx(9 / 5)
    assert [each["loss"] for each in written.updates] == [2.0, 2.0, 4.0, 0.5]
    assert log.state.window == {}


def test_without_clipping_nothing_is_said_of_it_and_skipped_updates_are_counted(written: Written) -> None:
    log = log_of(written, clip=0.0)
    log.skip("why")
    log.skip("why again")
    step(log, 1.0, total=1.0, count=1, symbols=1, norm=99.0)
    step(log, 2.0, total=1.0, count=1, symbols=1, norm=99.0)
    step(log, 3.0, total=1.0, count=1, symbols=1, norm=99.0)
    step(log, 4.0, total=1.0, count=1, symbols=1, norm=99.0)
    assert written.remarks == ["why", "why again"]
    assert [line.get("skipped") for line in written.lines] == [2.0, None]
    assert not any("clipped" in line for line in written.lines)


def test_the_last_line_says_how_it_ended(written: Written) -> None:
    log = log_of(written)
    log.end(Summary(12, 1.5, {"loss": 0.123456, "accuracy": 1.0}, 59.6, 7, "patience"))
    log.end(Summary(1, 0.25, {}, 0.4, 7, "steps"))
    assert written.remarks == [
        "12 steps, 1.50 epochs, 60 s (no further gain): loss 0.1235, accuracy 1",
        "1 steps, 0.25 epochs, 0 s (steps): not validated",
    ]


def test_what_an_objective_logs_is_summed_over_updates_and_micro_batches(tmp_path: Path) -> None:
    """Without label smoothing the loss is the negative log-likelihood, to the last digit."""
    trainer(tmp_path, steps=6, accumulate=2).fit()
    lines = [line for line in metrics(tiny_run(tmp_path)) if line["kind"] == "train"]
    assert len(lines) == 2
    assert [line["nll"] for line in lines] == pytest.approx([line["loss"] for line in lines], rel=1e-12)
