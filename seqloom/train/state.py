"""The numbers of a training: all of a trainer's state that is not a tensor."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, get_type_hints

from typing_extensions import TypedDict  # that of typing, before Python 3.12, is not what pydantic needs

from seqloom.errors import SeqloomError, show
from seqloom.storage.files import RESTORE
from seqloom.storage.history import Results
from seqloom.values import check


@dataclass
class Budget:
    """How the minutes of a training are used."""

    minutes: float  # the limit that the number of updates was chosen for
    preparation: float  # seconds before the first update
    validation: float  # seconds of the last validation
    longest: int  # updates that there may be at most, if the training is faster than measured
    planned: int = 0  # updates, where their number was changed since; 0: as the settings say
    instead_of: int = 0  # the number that was changed
    step: int = 0  # when the time was checked last
    seconds: float = 0.0  # of updates, when the time was checked last
    validating: float = 0.0  # seconds of all validations


class Best(TypedDict):
    """A validation among the best."""

    step: int
    value: float
    results: Results


@dataclass
class TrainingState:
    """How far a training is. Stored in the trainer.json of a checkpoint, under these names."""

    step: int = 0  # updates so far, skipped ones included
    epoch: int = 0
    batch: int = 0  # micro-batches of this epoch so far
    seconds: float = 0.0
    validated: int = 0  # the step of the last validation
    stale: int = 0  # validations in a row without gain
    halvings: int = 0  # of the learning rate, by the plateau schedule
    first_phase: bool = False  # whether it is in the first phase that its encoder has
    first_loss: float | None = None  # the lowest validation loss of the first phase
    faults: int = 0  # updates in a row that were not finite
    best: list[Best] = field(default_factory=list)  # best first
    window: dict[str, float] = field(default_factory=dict)  # sums since the last line of metrics.jsonl
    metrics: int = 0  # bytes of metrics.jsonl
    budget: Budget | None = None  # with a limit in minutes

    def restore(self, stored: Any, origin: str) -> None:
        """Take the numbers of a checkpoint, or say what is wrong with them."""
        if not isinstance(stored, dict):
            raise SeqloomError(f"{origin} = {show(stored)}: expected an object; {RESTORE}")
        types = get_type_hints(TrainingState)
        found: dict[str, Any] = {}
        for name, value in stored.items():
            if name not in types or (isinstance(value, (int, float)) and not value >= 0):  # not: NaN
                raise SeqloomError(f"{origin}.{name} = {show(value)}: no number of a training; {RESTORE}")
            found[name] = check(types[name], value, f"{origin}.{name}", finite=False)  # a skipped update had NaN
        vars(self).update(vars(TrainingState(**found)))

    def add_validation(self, results: Results, value: float, *, sign: float, keep: int) -> bool:
        """Add a validation to the `keep` best; whether it is the best so far. The sign is +1 if higher is better."""
        finite = math.isfinite(value)

        def rank(entry: Best) -> tuple[float, float, int]:
            """Best first. Among equals the lower loss wins: a metric may stay at zero for long."""
            return -sign * entry["value"], entry["results"].get("loss", 0.0), entry["step"]

        entry: Best = {"step": self.step, "value": value, "results": results}
        gain = finite and (not self.best or rank(entry) < rank(self.best[0]))
        self.validated = self.step
        self.stale = 0 if gain else self.stale + 1
        self.halvings += not gain
        if finite:
            self.best.append(entry)
            self.best.sort(key=rank)
            del self.best[keep:]
        return gain
