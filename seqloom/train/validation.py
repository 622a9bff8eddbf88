"""Validation: measure the validation set, keep the best weights, average the best at the end."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from seqloom.config.settings import Settings
from seqloom.data.batching import Plan
from seqloom.errors import SeqloomError, nearest, show
from seqloom.storage import weights
from seqloom.storage.history import Results
from seqloom.storage.run import Run
from seqloom.train import processes
from seqloom.train.evaluation import Evaluate
from seqloom.train.first_phase import FirstPhase
from seqloom.train.log import Log
from seqloom.train.resume import best_on_disk
from seqloom.train.state import Best, TrainingState
from seqloom.train.training import Training
from seqloom.types import Batch, State

if TYPE_CHECKING:
    from seqloom.data.corpus import Corpus

PLACE = 2**32 - 1  # seeds the random numbers of a validation: no micro-batch has this place in an update


class Validation:
    def __init__(
        self,
        corpus: Corpus,
        *,
        collate: Callable[[Corpus, np.ndarray], Batch],
        in_order: Callable[..., Plan],
        evaluate: Evaluate | None,
        higher_is_better: Callable[[str], bool],
        training: Training,
        settings: Settings,
        state: TrainingState,
        run: Run,
        log: Log,
        first_phase: FirstPhase,
        tasks: Sequence[str] = ("",),
    ):
        self.corpus, self.collate, self.in_order, self.evaluate = corpus, collate, in_order, evaluate
        self.training, self.settings, self.state, self.run, self.log = training, settings, state, run, log
        self.first_phase, self.tasks = first_phase, tasks
        self.select_by = settings.select_by or "loss"
        lower = self.select_by in ("loss", "perplexity") or not higher_is_better(self.select_by)
        self.sign = -1.0 if lower else 1.0

    def validate(self) -> bool:
        """Measure the weights to predict with; whether they are the best so far."""
        average, model, began = self.training.average, self.training.model, time.monotonic()
        with average.applied(model) if average else nullcontext():
            results = self.measure()
        best = self.state.add_validation(results, results[self.select_by], sign=self.sign, keep=self.settings.keep)
        self.log.validation(results, best)
        self.log.phase(self.first_phase.validated(results["loss"]))
        if budget := self.state.budget:
            budget.validation = processes.broadcast(time.monotonic() - began, self.training.device)
            budget.validating += budget.validation
        return best

    def measure_start(self) -> None:
        """Write down the loss before the first update, which those that follow are compared with."""
        began = time.monotonic()
        self.log.write({"kind": "start"}, self.measure_loss())
        if budget := self.state.budget:
            budget.validating += processes.broadcast(time.monotonic() - began, self.training.device)

    @torch.no_grad()
    def measure_loss(self) -> Results:
        """The loss and, of tokens, the perplexity; shared by all processes."""
        training, device = self.training, self.training.device
        training.eval()
        training.seed_random_numbers(self.state.step, PLACE)
        plan = self.in_order(self.corpus.lengths, self.settings.tokens)
        numbers = range(processes.rank(), len(plan), processes.world_size())
        if plan.stride:  # windows of one text, one after the other: the lead reads them all
            numbers = range(len(plan) if processes.is_lead() else 0)
        sums = {name: np.zeros(4) for name in self.tasks}  # total, count, negative log-likelihood, whether there is one
        state: State | None = None
        for number in numbers:
            batch = self.collate(self.corpus, plan[number]).to(device)
            loss = training(replace(batch, state=state))
            state = loss.state
            nll = loss.logs.get("nll")  # without label smoothing, which perplexity has not; squared errors have none
            likelihood = (0.0, 0.0) if nll is None else (nll.item(), 1.0)
            sums[batch.task] += (loss.total.item(), loss.count.item(), *likelihood)
        flat = processes.sums(np.concatenate([*sums.values()]).tolist(), device)
        return mean_losses({name: flat[4 * place : 4 * place + 4] for place, name in enumerate(self.tasks)})

    @torch.no_grad()
    def measure(self) -> Results:
        """The loss, and the metrics, which the lead computes from the outputs of all processes."""
        training, results = self.training, self.measure_loss()
        if self.evaluate:
            metrics, samples = self.evaluate(training.model)
            results.update({name: float(value) for name, value in metrics.items()})
            for sample in samples:
                self.log.display.sample(*sample)
        training.train()
        results = processes.broadcast(results, training.device)
        if self.select_by not in results:
            raise SeqloomError(
                f"train.select_by = {show(self.select_by)} is not measured here{nearest(self.select_by, results)}"
            )
        return results

    def load_best(self, average: int) -> Results:
        """Load and publish the best weights, or the average of the best checkpoints if that is better."""
        processes.wait()  # until the lead has written its last checkpoint, which all processes read
        model, best = self.training.model, best_on_disk(self.run, self.state)
        results: Results = {}
        if not best:  # interrupted before the first validation
            published = self.training.weights()
        else:
            weights.load(model, self.run.checkpoint(best[0]["step"]).model(), "the best checkpoint")
            results, count = best[0]["results"], min(average, len(best))
            if count > 1 and (averaged := self.measure_average(best[:count])):
                results = averaged
            published = weights.weights_of(model)
        if processes.is_lead():
            self.run.publish(published)
        processes.wait()  # no process leaves before the folder is complete
        return results

    def measure_average(self, best: Sequence[Best]) -> Results:
        """Load the average of the best checkpoints if it is better than each of them; its results, empty if not."""
        model, count = self.training.model, len(best)
        paths = [self.run.checkpoint(entry["step"]).verified("model.safetensors") for entry in best]
        weights.load(model, weights.average(paths), "the average")
        results = self.measure()
        self.log.write({"kind": "valid", "average": count}, results)
        if self.sign * results[self.select_by] > self.sign * best[0]["value"]:
            self.log.display.say(f"the average of the {count} best checkpoints is better than each of them: it is kept")
            return results
        weights.load(model, self.run.checkpoint(best[0]["step"]).model(), "the best checkpoint")
        return {}


def mean_losses(sums: Mapping[str, Sequence[float]]) -> Results:
    """The mean loss of each task and, of tokens, the perplexity; with several tasks, also the mean of their losses."""
    results: Results = {}
    for name, (total, count, nll, has_nll) in sums.items():
        if not count:
            raise SeqloomError("the validation set has no target token to measure: give other validation data")
        results[f"{name}/loss"] = total / count
        if has_nll:
            results[f"{name}/perplexity"] = math.exp(min(nll / count, 700.0))
    if "" in sums:
        return {name.removeprefix("/"): value for name, value in results.items()}
    return {"loss": sum(results[f"{name}/loss"] for name in sums) / len(sums), **results}
