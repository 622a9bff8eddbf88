"""The summary of a training, and its history in a run folder: recipe, number of parameters, metrics.jsonl."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors

from seqloom.errors import SeqloomError
from seqloom.storage.run import Run

Results = dict[str, float]
Curve = tuple[np.ndarray, np.ndarray]  # steps or minutes, and values; (N,) each
PLACE = ("kind", "step", "epoch", "seconds", "average")  # keys of a metrics line that are not measures


@dataclass(frozen=True)
class Summary:
    """The outcome of a training."""

    steps: int
    epochs: float
    best: Results  # of the weights that predictions use; empty if nothing was validated
    seconds: float
    examples: int  # in the training set
    stopped: str  # why: "epochs", "steps", "minutes", "patience" or "interrupted"


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
        return cls(run.path, run.recipe(), parameters_of(run), metrics_of(run))

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


def metrics_of(run: Run) -> list[dict[str, Any]]:
    """The lines of metrics.jsonl, but for a last line that is still being written."""
    try:
        *lines, _ = run.metrics.read_bytes().split(b"\n")
    except OSError as error:
        raise SeqloomError(f"{run.metrics}: cannot be read ({error.strerror}); was this run trained?") from None
    found = []
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
            found.append({**record, "kind": record["kind"], "step": record["step"], "seconds": record["seconds"]})
        except (ValueError, KeyError, TypeError):
            raise SeqloomError(
                f"{run.metrics}, line {number}: expected a JSON object with kind, step and seconds; restore the file"
            ) from None
    return found


def parameters_of(run: Run) -> int | None:
    """The number of weights, from the header of their file."""
    if not run.weights.exists():
        return None
    try:
        with safetensors.safe_open(run.weights, "numpy") as tensors:
            return sum(math.prod(tensors.get_slice(name).get_shape()) for name in tensors.keys())  # noqa: SIM118
    except (safetensors.SafetensorError, OSError) as error:
        raise SeqloomError(f"{run.weights}: not a complete safetensors file ({error}); copy it again") from None
