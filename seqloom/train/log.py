"""What a training writes down: metrics.jsonl, the display, TensorBoard. Only the lead process writes."""

from __future__ import annotations

import time
from typing import Any

from seqloom.config.settings import Settings
from seqloom.storage.history import Results, Summary
from seqloom.storage.run import Run
from seqloom.train import processes
from seqloom.train.batches import Batches
from seqloom.train.display import Display
from seqloom.train.state import TrainingState
from seqloom.train.tensorboard import TensorBoard

# Summed in each update, beside the logs of the objective. The names are stored in trainer.json; symbols: target tokens.
SUMS = ("total", "count", "symbols")


class Log:
    def __init__(self, run: Run, display: Display, settings: Settings, state: TrainingState, batches: Batches):
        self.run, self.display, self.settings, self.state, self.batches = run, display, settings, state, batches
        self.started = time.monotonic()
        self.tensorboard: TensorBoard | None = None

    def start(self, parameters: int, total_updates: int | None) -> None:
        """Before the first update of a new or resumed training."""
        self.started = time.monotonic() - self.state.seconds
        if self.settings.tensorboard and processes.is_lead():
            self.tensorboard = TensorBoard(self.run.path, self.state.step)
        self.display.begin(total_updates, parameters, self.run.path.name)

    def seconds(self) -> float:
        """How long the training has taken, before a resume included."""
        return time.monotonic() - self.started

    def update(self, sums: Results, learning_rate: float, gradient_norm: float) -> None:
        """Display each update; write the mean over every `log_every` of them."""
        state, window = self.state, self.state.window
        for name, value in sums.items():
            window[name] = window.get(name, 0.0) + value
        window["updates"] = window.get("updates", 0.0) + 1
        window["clipped"] = window.get("clipped", 0.0) + (0 < self.settings.clip < gradient_norm)
        elapsed = max(state.seconds - window.setdefault("since", state.seconds), 1e-9)
        rate = (window["symbols"] - window.setdefault("first", sums["symbols"])) / elapsed  # tokens per second
        speed = {"learning_rate": learning_rate, "gradient_norm": gradient_norm}
        self.display.update(step=state.step, epoch=state.epoch, loss=sums["total"] / sums["count"], rate=rate, **speed)
        if state.step % self.settings.log_every == 0:
            means = {name: window[name] / window["count"] for name in sums if name not in SUMS}
            means |= {"clipped": window["clipped"] / window["updates"]} if self.settings.clip else {}
            means |= {"skipped": window["skipped"]} if "skipped" in window else {}
            self.write({"kind": "train"}, {"loss": window["total"] / window["count"], **means, **speed}, rate=rate)
            state.window = {}

    def skip(self, reason: str) -> None:
        """An update that was not made: counted in the next line of metrics.jsonl."""
        self.state.window["skipped"] = self.state.window.get("skipped", 0.0) + 1
        self.display.say(reason)

    def validation(self, results: Results, best: bool) -> None:
        self.display.validation(step=self.state.step, results=results, best=best)
        self.write({"kind": "valid"}, results)

    def phase(self, ended: str) -> None:
        """A phase of the training that has ended, if one has."""
        if ended:
            self.display.say(ended)
            self.write({"kind": "phase"}, {})

    def write(self, head: dict[str, Any], values: Results, **more: float) -> None:
        """One line of metrics.jsonl."""
        if processes.is_lead():
            place = {"step": self.state.step, "epoch": round(self.batches.epochs, 4)}
            self.run.log({**head, **place, **values, **more, "seconds": round(self.seconds(), 3)})
            if self.tensorboard:
                self.tensorboard.add(head["kind"], self.state.step, values)

    def end(self, summary: Summary) -> None:
        best = ", ".join(f"{name} {value:.4g}" for name, value in summary.best.items()) or "not validated"
        reason = {"patience": "no further gain"}.get(summary.stopped, summary.stopped)
        self.display.end(
            f"{summary.steps} steps, {summary.epochs:.2f} epochs, {summary.seconds:.0f} s ({reason}): {best}"
        )
        if self.tensorboard:
            self.tensorboard.close()
