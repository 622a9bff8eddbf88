"""The training loop: updates, validations, checkpoints.

Batches are a pure function of the seed and the epoch; drop-out is one of the seed, the step and the micro-batch. So a
resumed training equals an unbroken one bit for bit, and two processes that share an update equal one that makes all of
it. This holds with a limit in minutes too, unless the machine becomes much slower or faster than it was measured to be.
"""

from __future__ import annotations

import math
import signal
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np
from torch import nn

from seqloom.compute.device import choose_device
from seqloom.compute.precision import choose_precision
from seqloom.config.settings import Settings
from seqloom.contracts import Objective
from seqloom.data import batching
from seqloom.errors import SeqloomError
from seqloom.storage.history import Results, Summary
from seqloom.storage.run import Run
from seqloom.train import processes
from seqloom.train.batches import Batches, Change, changes_of
from seqloom.train.display import Display
from seqloom.train.divergence import DivergenceCheck
from seqloom.train.evaluation import Evaluate
from seqloom.train.first_phase import FirstPhase
from seqloom.train.interruption import SIGNALS, Interruption
from seqloom.train.log import SUMS, Log
from seqloom.train.nonfinite import Fault, skip_update
from seqloom.train.optimiser import NamedOptimiser
from seqloom.train.resume import Checkpointer
from seqloom.train.schedule import TrainingSchedule
from seqloom.train.state import Budget, TrainingState
from seqloom.train.training import Training
from seqloom.train.validation import Validation
from seqloom.types import Batch, Loss

if TYPE_CHECKING:
    from seqloom.data.corpus import Corpus


class Trainer:
    """Trains a model within a run folder; if the folder has a checkpoint, resumes from the newest."""

    def __init__(
        self,
        *,
        model: nn.Module,
        objective: Objective,
        train: Corpus,
        valid: Corpus,
        collate: Callable[[Corpus, np.ndarray], Batch],
        plan: Callable[..., batching.Plan],
        settings: Settings,
        seed: int,
        run: Run,
        in_order: Callable[..., batching.Plan] = batching.in_order,
        augment: Change | None = None,
        evaluate: Evaluate | None = None,
        higher_is_better: Callable[[str], bool] = lambda name: True,
        display: Display | None = None,
        budget: Budget | None = None,
        guess: float = 0.0,
        tasks: Sequence[str] = ("",),
    ):
        for name, corpus in (("training", train), ("validation", valid)):
            if not len(corpus):
                raise SeqloomError(f"the {name} set is empty: give at least one example")
        device = choose_device(settings.device)
        processes.begin(device, settings.timeout)
        self.run, self.settings, self.state = run, settings, TrainingState(budget=budget)
        self.display = display if display is not None and processes.is_lead() else Display.quiet()
        self.training = Training(
            model,
            objective,
            device=device,
            precision=choose_precision(settings.precision, device),
            seed=seed,
            ema=settings.ema,
        )
        self.optimiser = NamedOptimiser(self.training, settings)
        changes = changes_of(augment, objective)
        self.batches = Batches(
            train, collate=collate, plan=plan, changes=changes, settings=settings, seed=seed, state=self.state
        )
        self.schedule = TrainingSchedule(settings, self.state, self.batches)
        self.log = Log(run, self.display, settings, self.state, self.batches)
        self.first_phase = FirstPhase(self.training, self.state)
        self.validation = Validation(
            valid,
            collate=collate,
            in_order=in_order,
            evaluate=evaluate,
            higher_is_better=higher_is_better,
            training=self.training,
            settings=settings,
            state=self.state,
            run=run,
            log=self.log,
            first_phase=self.first_phase,
            tasks=tasks,
        )
        self.divergence = DivergenceCheck(run, self.training, settings, self.state, guess)
        self.checkpointer = Checkpointer(run, self.training, self.optimiser, self.batches, settings, self.state)
        self.interruption = Interruption()

    def fit(self) -> Summary:
        """Train until a limit is reached, validations bring no more gain, or a signal comes."""
        for line in self.checkpointer.resume():
            self.display.say(line)
        self.batches.start()
        self.signal = 0  # that any process has received
        with self.interruption, self.display, closing(self.batches):
            parameters = sum(value.numel() for value in self.training.model.parameters())
            self.log.start(parameters, self.schedule.total_updates())
            self.keep_to_time()  # resumed with other minutes, it may go on
            if not self.state.step:
                self.validation.measure_start()
            self.first_phase.begin()
            while not (stopped := self.schedule.reason_to_stop() or ("interrupted" if self.signal else "")):
                self.update()
                self.keep_to_time()
                if self.schedule.validation_is_due():
                    self.validate()
                elif self.schedule.checkpoint_is_due():
                    self.save()
            if stopped == "interrupted":
                self.save()
            else:
                self.log.phase(self.first_phase.progressed(1.0))
                if self.state.validated < self.state.step:
                    self.validate()
                self.divergence.check(ended=True)
            summary = Summary(
                steps=self.state.step,
                epochs=self.batches.epochs,
                best=self.validation.load_best(average=0 if stopped == "interrupted" else self.settings.average),
                seconds=self.log.seconds(),
                examples=len(self.batches.corpus),
                stopped=stopped,
                signal=self.signal,
            )
            self.log.end(summary)
        return summary

    def update(self) -> None:
        """One step of the optimiser, over the micro-batches of all processes."""
        progress = self.schedule.progress()  # before the step: a schedule that ends at zero wastes no update
        self.log.phase(self.first_phase.progressed(progress))
        self.state.step += 1
        numbers = self.batches.take()
        self.training.train()
        self.optimiser.clear_gradients()
        sums, fault = self.backward(numbers, progress)
        norm = math.nan
        if math.isfinite(sums["total"]) and sums["count"] > 0:
            norm = self.optimiser.scale_and_clip(processes.world_size() / sums["count"], self.settings.clip)
        if math.isfinite(norm):
            learning_rate = self.schedule.learning_rate(progress) * self.first_phase.rate()
            self.optimiser.step(learning_rate)
            if self.training.average:
                self.training.average.update(self.training.model, self.state.step)
            self.state.faults = 0
            self.log.update(sums, learning_rate, norm)
        else:
            self.log.skip(skip_update(self.training, self.batches, fault, sums, progress, numbers))
        self.optimiser.clear_gradients()
        self.batches.advance()

    def backward(self, numbers: Sequence[int], progress: float) -> tuple[Results, Fault | None]:
        """Add up the gradients of the micro-batches; the sums over all processes, and this one's first fault."""
        world, rank, device = processes.world_size(), processes.rank(), self.training.device
        sums: Results = dict.fromkeys(SUMS, 0.0)
        fault: Fault | None = None
        rounds = math.ceil(len(numbers) / world)
        for turn in range(rounds):
            place = turn * world + rank
            # The last update of an epoch may have too few micro-batches for all processes. Those without one compute
            # the first again and count it as nothing, so that all processes make the same calls.
            share = float(place < len(numbers))
            place = place if share else 0
            batch = self.batches.get(numbers[place], place).to(device)
            self.training.seed_random_numbers(self.state.step, place)
            loss: Loss = self.training(batch, progress)
            (loss.total * share).backward()
            if loss.state is not None and share:
                self.batches.carried[str(place)] = loss.state
            counted = {"total": loss.total, "count": loss.count, "symbols": batch.targets.lengths.sum()}
            for name, value in {**loss.logs, **counted}.items():
                sums[name] = sums.get(name, 0.0) + value.item() * share
            if fault is None and not math.isfinite(loss.total.item()):
                fault = place, batch
        processes.average_gradients(self.training.parameters())

        # One more exchange per update: the sums, the signals that any process received, and the seconds of the lead.
        names = sorted(sums)
        seconds = self.log.seconds() if processes.is_lead() else 0.0
        received = [float(self.interruption.received == number) for number in SIGNALS]
        *totals, interruptions, terminations, self.state.seconds = processes.sums(
            [*(sums[name] for name in names), *received, seconds], device
        )
        self.signal = signal.SIGTERM if terminations else signal.SIGINT if interruptions else 0
        return dict(zip(names, totals, strict=True)), fault

    def keep_to_time(self) -> None:
        if changed := self.schedule.keep_to_time():
            self.display.say(changed)
            self.display.total_steps = self.schedule.total_updates()

    def validate(self) -> None:
        is_best = self.validation.validate()
        self.save()
        self.divergence.check(ended=False)
        if is_best and processes.is_lead():
            self.run.publish(self.training.weights())

    def save(self) -> None:
        self.checkpointer.save(self.log.seconds())
