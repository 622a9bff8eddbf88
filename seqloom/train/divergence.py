"""Divergence: a training whose best weights are worse than those before the first update is a failure.

Updates that are not finite are counted elsewhere (`nonfinite`). A learning rate that is far too high need not cause
any: saturated logits give finite losses such as 6.7e31, and a short training may end before five updates in a row fail.

The best validation loss is compared with that before the first update (the line "start" of metrics.jsonl) and with that
of a guess among all tokens. A model that has learned its training data by heart may well be worse than a guess on other
data, so the training loss must be high as well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from seqloom.config.settings import Settings
from seqloom.contracts import Codec
from seqloom.errors import SeqloomError
from seqloom.storage.history import metrics_of
from seqloom.storage.run import Run
from seqloom.train import processes
from seqloom.train.state import TrainingState
from seqloom.train.training import Training

HANDFUL = 20  # updates: so few may raise the loss a little before it falls
RISEN = 1.5  # times the first loss: of a handful of updates, only this is divergence
HOPELESS = 1e3  # times the first loss: no training comes back from here
RECENT = 0.1  # the share of updates, at the end, whose training loss counts
USUAL = {"sgd": 0.1, "adam": 1e-3, "adamw": 1e-3}  # learning rates that most models can be trained with


def guess_loss(target: Codec, fine_tuned: bool) -> float:
    """The loss of a guess among all tokens. Unknown, it is 0, or for trained weights infinite: those begin low."""
    if target.vocabulary is not None and target.chooses != "places":
        return math.log(target.vocabulary)
    return math.inf if fine_tuned else 0.0


def excess(lines: Sequence[dict[str, Any]], best: float, guess: float) -> float:
    """How many times higher the best validation loss is than both the first one and that of a guess.

    0 where the training loss is lower than these, and where the first loss is not known.
    """
    start = start_loss(lines)
    limit = math.inf if start is None else max(start, guess)
    if not 0 < limit < math.inf:
        return 0.0
    recent = recent_loss(lines)
    if recent is not None and recent < limit and best < HOPELESS * limit:
        return 0.0
    return best / limit


def start_loss(lines: Sequence[dict[str, Any]]) -> float | None:
    """The validation loss before the first update; None in runs that have no such line."""
    return next((line.get("loss") for line in lines if line["kind"] == "start"), None)


def recent_loss(lines: Sequence[dict[str, Any]]) -> float | None:
    """The mean training loss at the end, without label smoothing; None where none was written down."""
    losses = [(line["step"], line.get("nll", line.get("loss"))) for line in lines if line["kind"] == "train"]
    found = [(step, loss) for step, loss in losses if loss is not None]
    last = [loss for step, loss in found if step > (1 - RECENT) * found[-1][0]]
    return sum(last) / len(last) if last else None


@dataclass(frozen=True)
class DivergenceCheck:
    """Fails a training that has diverged. Its run folder stays, without weights to predict with."""

    run: Run
    training: Training
    settings: Settings
    state: TrainingState
    guess: float = 0.0

    def check(self, ended: bool) -> None:
        """Before the end, only a hopeless loss counts: the learning rate may still fall."""
        best = self.state.best[0]["results"].get("loss", math.nan) if self.state.best else math.nan
        if math.isnan(best):
            times = math.inf if ended else 0.0
        else:
            lines = metrics_of(self.run) if processes.is_lead() else []
            times = processes.broadcast(excess(lines, best, self.guess), self.training.device)
        if times > self.allowed(ended):
            if processes.is_lead():
                self.run.withdraw()
            raise SeqloomError(self.advice(best))

    def allowed(self, ended: bool) -> float:
        if not ended or self.training.objective.improves == "outputs":  # rewards and margins may cost likelihood
            return HOPELESS
        return 1.0 if self.state.step >= HANDFUL else RISEN

    def advice(self, best: float) -> str:
        start = start_loss(metrics_of(self.run)) if processes.is_lead() else None
        found = "no validation loss was finite" if math.isnan(best) else f"the best validation loss is {best:.3g}"
        before = "" if start is None else f", before the first update it was {start:.3g}"
        rate = min(self.settings.learning_rate / 10, USUAL[self.settings.optimiser])
        return (
            f"training diverged by step {self.state.step}: {found}{before}; train again with a lower learning rate, "
            f"--set train.learning_rate={rate:.1g}, and another --out: {self.run.path} keeps its checkpoints and "
            "metrics, but no weights to predict with"
        )
