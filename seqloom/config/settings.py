"""The tables of a recipe that are no parts: [train], how a model is trained, and [data], what on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

from seqloom.config.assemble import Section, assemble
from seqloom.errors import SeqloomError, nearest, show
from seqloom.values import expect

MOST = {"tokens": 10_000_000, "accumulate": 100_000, "threads": 4096, "warmup": 2**40, "keep": 10_000}

Optimiser = Literal["adamw", "adam", "sgd"]
Schedule = Literal["rsqrt", "cosine", "plateau", "quarters", "constant"]
Precision = Literal["auto", "fp32", "bf16"]
Device = Literal["auto", "cpu", "cuda", "mps"]


@dataclass(frozen=True)
class Settings:
    """Training ends with the first of epochs, steps and minutes that is reached; without any, after 20 epochs.

    Minutes include the preparation and the last validation; `fit` turns them into a number of steps.
    """

    tokens: int = 4096  # of a micro-batch, padding included
    accumulate: int = 1  # micro-batches an update
    epochs: float | None = None
    steps: int | None = None  # updates
    minutes: float | None = None
    optimiser: Optimiser = "adamw"
    learning_rate: float = 1e-3  # the highest, reached at the end of the warm-up
    betas: tuple[float, float] = (0.9, 0.98)
    weight_decay: float = 0.0  # of matrices; biases and gains are never decayed
    momentum: float = 0.9  # of sgd
    schedule: Schedule = "rsqrt"
    warmup: int = 100  # updates
    clip: float = 1.0  # global norm of the gradient; 0: off
    validate_every: int = 0  # updates; 0: after each epoch
    decode: int = 500  # examples of a validation that are decoded greedily for its metrics; 0: all
    patience: int = 0  # validations without gain before training stops; 0: off
    keep: int = 3  # best checkpoints, beside the newest
    average: int = 0  # of how many best checkpoints the average is tried at the end; 0: off
    ema: float = 0.0  # decay of the moving average of weights; 0: off
    precision: Precision = "auto"
    device: str = "auto"
    threads: int = 0  # of a processor; 0: as before in this run, as OMP_NUM_THREADS says, or measured
    select_by: str = ""  # the metric that says which checkpoint is best; empty: the loss
    log_every: int = 10  # updates
    checkpoint_every: int = 0  # updates; 0: at validations, which always save
    tensorboard: bool = False
    timeout: float = 10.0  # minutes that processes (torchrun) wait for one of them that does not answer
    made_for: int = 0  # examples (of a running text: tokens) that these values were chosen for; 0: for any number

    def __post_init__(self) -> None:
        for name in ("tokens", "accumulate", "log_every", "keep"):
            self._expect(name, getattr(self, name) >= 1, "1 or more")
        for name, most in MOST.items():
            self._expect(name, getattr(self, name) <= most, f"at most {most:,}")
        for name in (
            "warmup",
            "validate_every",
            "decode",
            "patience",
            "average",
            "checkpoint_every",
            "threads",
            "made_for",
        ):
            self._expect(name, getattr(self, name) >= 0, "0 or more")
        for name in ("epochs", "steps", "minutes"):
            limit = getattr(self, name)
            self._expect(name, limit is None or (limit > 0 and math.isfinite(limit)), "more than 0")
        for name in ("weight_decay", "clip", "made_for"):
            value = getattr(self, name)
            self._expect(name, value >= 0 and math.isfinite(value), "0 or more")
        self._expect("timeout", 0 < self.timeout <= 60 * 24 * 7, "more than 0, and a week at most")
        self._expect("learning_rate", 0 < self.learning_rate < math.inf, "more than 0")
        for name in ("momentum", "ema"):
            self._expect(name, 0 <= getattr(self, name) < 1, "at least 0 and below 1")
        self._expect(
            "betas", len(self.betas) == 2 and all(0 <= beta < 1 for beta in self.betas), "two numbers in [0, 1)"
        )
        self._expect("average", self.average <= self.keep, f"at most keep = {self.keep}, the checkpoints there will be")
        for name, kind in (
            ("optimiser", Optimiser),
            ("schedule", Schedule),
            ("precision", Precision),
            ("device", Device),
        ):
            chosen: Any = getattr(self, name)
            if chosen not in get_args(kind):
                raise SeqloomError(f"train.{name} = {show(chosen)} is unknown{nearest(str(chosen), get_args(kind))}")

    def _expect(self, name: str, holds: bool, expected: str) -> None:
        if not holds:
            raise SeqloomError(f"train.{name} = {getattr(self, name)} cannot be used: it must be {expected}")


@dataclass(frozen=True)
class Data:
    """The [data] of a recipe: where examples are read from, each one file or a source file and a target file."""

    train: str | tuple[str, str] | None = None
    valid: str | tuple[str, str] | None = None
    test: str | tuple[str, str] | None = None
    max_characters: int = 20_000  # of a line; as the readers have it
    skip_bad: bool = False
    columns: tuple[str | int, ...] | None = None  # source and target, by name or by number from 1
    header: bool | None = None  # whether line 1 names the columns; None: asked if it looks so
    quotes: bool | None = None  # whether quotes enclose cells; None: in CSV always, in TSV where only that makes sense
    dialogues: bool = False  # whether lines are dialogues, each turn of which is a reply to those before it

    def __post_init__(self) -> None:
        expect(1, 100_000_000, max_characters=self.max_characters)


def build_data(recipe: dict[str, Any]) -> Data:
    """How the data of a completed recipe is read."""
    return assemble(Section(Data), recipe["data"], "data", trust=False)


def build_settings(recipe: dict[str, Any]) -> Settings:
    """The training settings of a completed recipe."""
    return assemble(Section(Settings), recipe["train"], "train", trust=False)
