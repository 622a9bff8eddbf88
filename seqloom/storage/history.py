"""The summary of a training, and its history in a run folder: recipe, number of parameters, metrics.jsonl."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors

from seqloom.errors import SeqloomError, one_line, show
from seqloom.storage.files import LARGE, RESTORE, read_bytes
from seqloom.storage.run import Run
from seqloom.storage.weights import COPY, check_file

Results = dict[str, float]
Curve = tuple[np.ndarray, np.ndarray]  # steps or minutes, and values; (N,) each
PLACE = ("kind", "step", "epoch", "seconds", "average")  # keys of a metrics line that are not measures
LARGEST = 1e100  # of a measure: sums and squares of such numbers are still finite
TEXT, INTEGER, NUMBER, TABLE = "a string", "an integer", "a number", "a table"
KINDS: dict[str, tuple[type, ...]] = {TEXT: (str,), INTEGER: (int,), NUMBER: (int, float), TABLE: (dict,)}
RELIED_ON = {  # keys of a recipe that a comparison or a diagnosis reads, also where the recipe cannot be completed
    **dict.fromkeys(("objective", "search", "task", "encoder", "decoder", "train", "data"), TABLE),
    **dict.fromkeys(("task.source", "task.target"), TABLE),
    **dict.fromkeys(("init", "train.select_by", "train.optimiser", "objective.type", "search.type"), TEXT),
    **dict.fromkeys(("seed", "train.steps", "train.warmup", "search.beam_size"), INTEGER),
    **dict.fromkeys(("train.epochs", "train.minutes", "train.learning_rate"), NUMBER),
}


@dataclass(frozen=True)
class Summary:
    """The outcome of a training."""

    steps: int
    epochs: float
    best: Results  # of the weights that predictions use; empty if nothing was validated
    seconds: float
    examples: int  # in the training set
    stopped: str  # why: "epochs", "steps", "minutes", "patience" or "interrupted"
    signal: int = 0  # that interrupted it


@dataclass(frozen=True)
class History:
    """The training of a run folder, read back."""

    path: Path
    recipe: dict[str, Any]
    parameters: int | None  # None before the first validation
    lines: list[dict[str, Any]]  # of metrics.jsonl

    @classmethod
    def read(cls, path: Path | str) -> History:
        run = Run.open(path)
        recipe = run.recipe()
        check_recipe_values(recipe, run.path / "config.toml")
        return cls(run.path, recipe, parameters_of(run), metrics_of(run))

    @property
    def seed(self) -> int:
        return int(self.recipe.get("seed", 0))

    @property
    def measures(self) -> list[str]:
        """The names of what validations measure."""
        return list(dict.fromkeys(name for line in self.valid for name in line if name not in PLACE))

    @property
    def valid(self) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["kind"] == "valid"]

    def best(self, by: str, sign: float) -> dict[str, Any]:
        """The validation whose weights the run keeps; empty if there is none yet."""
        measured = [line for line in self.valid if isinstance(line.get(by), (int, float))]
        return max(measured, key=lambda line: (sign * line[by], -(line.get("loss") or 0), -line["step"]), default={})

    def curve(self, kind: str, name: str, across: str) -> Curve:
        """A measure over "step" or "minutes". The loss of training is without label smoothing."""
        found = []
        for line in self.lines:
            if line["kind"] == kind and "average" not in line:
                value = line.get("nll", line.get(name)) if kind == "train" else line.get(name)
                if isinstance(value, (int, float)):
                    found.append((line["step"] if across == "step" else line["seconds"] / 60, value))
        places, values = np.array(found, dtype=np.float64).reshape(-1, 2).T
        return places, values


def check_recipe_values(recipe: dict[str, Any], path: Path) -> None:
    """Refuse a recipe whose values are of other types than `seqloom train` writes."""
    for key, expected in RELIED_ON.items():
        value: Any = recipe
        for name in key.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        if value is not None and (isinstance(value, bool) or not isinstance(value, KINDS[expected])):
            raise SeqloomError(f"{path}: {key} = {show(value)}: expected {expected}; {RESTORE}")


def metrics_of(run: Run) -> list[dict[str, Any]]:
    """The lines of metrics.jsonl, but for a last line that is still being written."""
    *lines, _ = read_bytes(run.metrics, LARGE, "was this run trained?").split(b"\n")
    found = []
    for number, line in enumerate(lines, start=1):
        try:
            found.append(metrics_line(line))
        except (ValueError, RecursionError):
            raise SeqloomError(
                f"{run.metrics}, line {number}: expected a JSON object with kind, step, seconds and numbers by name; "
                "restore the file"
            ) from None
    return found


def metrics_line(line: bytes) -> dict[str, Any]:
    """One line of metrics.jsonl, its values checked. A measure too large to compute with is as good as not finite."""
    record = json.loads(line)
    if not isinstance(record, dict) or not all(name.isprintable() for name in record):
        raise ValueError("no object of measures")
    for name, value in record.items():
        if name == "kind" or value is None:
            continue
        if not isinstance(value, (int, float)) or value != value:
            raise ValueError("no number")
        if not abs(value) <= LARGEST:
            record[name] = None
    kind, step, seconds = (record.get(name) for name in ("kind", "step", "seconds"))
    if not isinstance(kind, str) or type(step) is not int or step < 0 or seconds is None:
        raise ValueError("no place in a training")
    return record


def parameters_of(run: Run) -> int | None:
    """The number of weights, from the header of their file."""
    if not run.weights.exists():
        return None
    check_file(run.weights)
    try:
        with safetensors.safe_open(run.weights, "numpy") as tensors:
            return sum(math.prod(tensors.get_slice(name).get_shape()) for name in tensors.keys())  # noqa: SIM118
    except Exception as error:  # of the library
        raise SeqloomError(f"{run.weights}: not a complete safetensors file ({one_line(error)}); {COPY}") from None
