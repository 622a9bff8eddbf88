"""The training loop: updates, validations, checkpoints, and nothing that a resumed run would do otherwise.

Where training stands is a handful of numbers (`Standing`). The batches of an epoch are a pure function of the seed
and the epoch; drop-out is one of the seed, the step and the micro-batch. So a resumed run equals an unbroken one bit
for bit, and two processes that share an update equal one that makes all of it. Only a limit in minutes breaks this:
there the schedule follows the clock.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import closing, nullcontext
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from seqloom.compute.device import choose_device
from seqloom.compute.precision import autocast, choose_precision
from seqloom.compute.threads import choose_threads
from seqloom.config.settings import Settings
from seqloom.contracts import Objective
from seqloom.data import batching
from seqloom.errors import SeqloomError, nearest
from seqloom.storage import weights
from seqloom.storage.history import Results, Summary
from seqloom.storage.run import Run
from seqloom.train import nonfinite as faults
from seqloom.train import processes
from seqloom.train.averaging import MovingAverage
from seqloom.train.display import Display
from seqloom.train.optimiser import NamedOptimiser
from seqloom.train.prefetch import Ahead
from seqloom.train.schedule import factor
from seqloom.train.state import Standing
from seqloom.train.tensorboard import Track
from seqloom.types import Batch, Loss, State, flatten, nest

if TYPE_CHECKING:
    from seqloom.data.corpus import Corpus

Sample = tuple[str, str, str]  # source, prediction, reference
Evaluate = Callable[[nn.Module], tuple[Results, Sequence[Sample]]]
SUMS = ("total", "count", "symbols")  # what is summed beside the logs of an objective
VALIDATION = 2**32 - 1  # the micro-batch number whose random numbers a validation uses


class Training(nn.Module):
    """Model and objective in one module: what data parallelism wraps."""

    def __init__(self, model: nn.Module, objective: Objective):
        super().__init__()
        self.model, self.objective = model, objective
        self.told = [part for part in model.modules() if hasattr(part, "progress")]  # they change over the training

    def forward(self, batch: Batch, progress: float) -> Loss:
        for part in self.told:
            part.progress = progress  # type: ignore[assignment]
        return self.objective(self.model, batch, progress)


def higher_unless_a_loss(name: str) -> bool:
    return name not in ("loss", "perplexity")


def planned(lengths: np.ndarray, tokens: int, seed: int, epoch: int, accumulate: int) -> batching.Plan:
    return batching.plan(lengths, tokens, seed, epoch)


class Trainer:
    """Trains a model within a run folder; if the folder has a checkpoint, goes on from the newest."""

    def __init__(
        self,
        *,
        model: nn.Module,
        objective: Objective,
        train: Corpus,
        valid: Corpus,
        collate: Callable[[Corpus, np.ndarray], Batch],
        settings: Settings,
        seed: int,
        run: Run,
        evaluate: Evaluate | None = None,
        display: Display | None = None,
        higher_is_better: Callable[[str], bool] = higher_unless_a_loss,
        plan: Callable[..., batching.Plan] = planned,
        in_order: Callable[..., batching.Plan] = batching.in_order,
        augment: Callable[[Batch, np.random.Generator], Batch] | None = None,
    ):
        processes.check_accumulate(settings.accumulate)
        for name, corpus in (("training", train), ("validation", valid)):
            if not len(corpus):
                raise SeqloomError(f"the {name} set is empty: give at least one example")
        self.device = choose_device(settings.device)
        self.precision = choose_precision(settings.precision, self.device)
        processes.begin(self.device)
        self.settings, self.seed, self.run, self.collate = settings, seed, run, collate
        self.train, self.valid, self.evaluate = train, valid, evaluate
        self.planned, self.in_order, self.augment = plan, in_order, augment
        self.carried: dict[str, State] = {}  # by micro-batch, what a running text has left of its last window
        self.display = display if display is not None and processes.is_lead() else Display.quiet()
        self.select_by = settings.select_by or "loss"
        self.sign = -1.0 if self.select_by in ("loss", "perplexity") or not higher_is_better(self.select_by) else 1.0
        self.model = model.to(self.device)
        self.training = Training(model, objective).to(self.device)
        prepares = type(objective).prepare is not Objective.prepare
        self.draws = prepares or augment is not None  # only then is there much to do ahead
        self.ahead = Ahead(self.batch)
        self.optimiser = NamedOptimiser(self.training, settings)
        self.average = MovingAverage(model, settings.ema) if settings.ema else None
        self.track: Track | None = None
        self.standing = Standing()

    # -- the loop

    def fit(self) -> Summary:
        """Train until a limit is reached, nothing is gained any more, or somebody interrupts."""
        self.resume()
        if self.settings.tensorboard and processes.is_lead():
            self.track = Track(self.run.path, self.standing.step)
        self.parallel = processes.wrap(self.training)
        self.plan = self.plan_of_epoch()
        self.began = time.monotonic() - self.standing.seconds
        self.interrupted = False
        with processes.Interruption() as self.interruption, self.display, closing(self.ahead):
            parameters = sum(value.numel() for value in self.model.parameters())
            self.display.begin(self.total_steps(), parameters, self.run.path.name)
            while not (stopped := self.reason_to_stop()):
                self.update()
                if self.validation_is_due():
                    self.validate()
                elif self.settings.checkpoint_every and self.standing.step % self.settings.checkpoint_every == 0:
                    self.save()
            if stopped == "interrupted":
                self.save()
            elif self.standing.validated < self.standing.step:
                self.validate()
            best = self.finish(stopped)
            summary = Summary(self.standing.step, self.epochs, best, self.seconds(), len(self.train), stopped)
            self.display.end(self.sentence(summary))
        if self.track:
            self.track.close()
        return summary

    def update(self) -> None:
        """One step: the micro-batches of this process, their gradients with those of the others, the optimiser."""
        standing, settings = self.standing, self.settings
        world, rank = processes.world_size(), processes.rank()
        numbers = list(range(standing.batch, min(standing.batch + settings.accumulate, len(self.plan))))
        progress = self.progress()  # before the step: a schedule that ends at zero wastes no update
        standing.step += 1
        standing.batch += len(numbers)
        self.training.train()
        self.optimiser.forget_gradients()
        sums: dict[str, float] = {"total": 0.0, "count": 0.0, "symbols": 0.0}
        faulty: tuple[int, Batch] | None = None
        rounds = math.ceil(len(numbers) / world)
        for turn in range(rounds):
            place = turn * world + rank
            # The last update of an epoch may have too few micro-batches for all processes. Those without one
            # compute the first again and count it as nothing, so that everybody makes the same calls.
            share = float(place < len(numbers))
            place = place if share else 0
            batch = self.ahead.get(standing.epoch, numbers[place]).to(self.device)
            if self.plan.continues(numbers[place]):
                batch = replace(batch, state=self.carried.get(str(place)))
            last = turn == rounds - 1
            if self.draws and (following := numbers[place] + world) < len(self.plan):
                self.ahead.begin(standing.epoch, following)
            with nullcontext() if last else processes.without_sync(self.parallel):
                self.seed_with(standing.step, place)
                with autocast(self.device, self.precision):
                    loss: Loss = self.parallel(batch, progress)
                (loss.total * share).backward()
            if loss.state is not None:
                self.carried[str(place)] = loss.state
            counted = {"total": loss.total, "count": loss.count, "symbols": batch.targets.lengths.sum()}
            for name, value in {**loss.logs, **counted}.items():
                sums[name] = sums.get(name, 0.0) + value.item() * share
            if not math.isfinite(loss.total.item()) and faulty is None:
                faulty = place, batch

        # One exchange an update: the sums, whether anybody was interrupted, and the clock of the lead.
        names = sorted(sums)
        clock = self.seconds() if processes.is_lead() else 0.0
        *totals, interruptions, standing.seconds = processes.sums(
            [*(sums[name] for name in names), float(self.interruption.received), clock], self.device
        )
        sums = dict(zip(names, totals, strict=True))
        self.interrupted = interruptions > 0

        norm = math.nan
        if math.isfinite(sums["total"]) and sums["count"] > 0:
            norm = self.optimiser.scale_and_clip(world / sums["count"], settings.clip)
        rate = self.learning_rate(progress)
        if math.isfinite(norm):
            self.optimiser.step(rate)
            if self.average:
                self.average.update(self.model, standing.step)
            standing.faults = 0
            self.log(sums, rate, norm)
        else:
            self.skip(faulty, sums, progress, numbers)
        self.optimiser.forget_gradients()
        if standing.batch >= len(self.plan):
            self.plan = self.plan_of_epoch(following=True)

    def batch(self, epoch: int, number: int) -> Batch:
        """A batch of this epoch as it is trained on: what is drawn for it is a function of where it stands."""
        batch = self.collate(self.train, self.plan[number])
        if not self.draws:
            return batch
        chance = np.random.default_rng([self.seed, epoch, number])
        batch = batch if self.augment is None else self.augment(batch, chance)
        return self.training.objective.prepare(batch, chance)

    def skip(self, faulty: tuple[int, Batch] | None, sums: Results, progress: float, numbers: Sequence[int]) -> None:
        """Leave the weights as they are, say what broke, and give up after too many in a row."""
        self.carried = {}
        where, rows = "", [name for number in numbers for name in self.plan.names(number)]
        if faulty:
            place, batch = faulty
            rows = list(batch.examples) or self.plan.names(numbers[place])
            self.seed_with(self.standing.step, place)

            def again() -> None:
                with autocast(self.device, self.precision):
                    self.training(batch, progress)

            where = faults.first_broken_module(self.training, again)
        elif not sums["count"]:
            where = "a loss over no target at all"
        elif math.isfinite(sums["total"]):
            where = faults.first_broken_gradient(self.training)
        # Only the process whose micro-batch broke can tell. Gradients are everybody's, so all say the same.
        tellers = processes.sums(
            [float(bool(where) and rank == processes.rank()) for rank in range(processes.world_size())], self.device
        )
        teller = next((rank for rank, tells in enumerate(tellers) if tells), 0)
        where, rows = processes.share([where or "the loss", [int(row) for row in rows]], self.device, teller)
        self.standing.faults += 1
        if self.standing.faults >= faults.PATIENCE:
            raise faults.give_up(where, self.standing.step, rows)
        self.display.say(f"step {self.standing.step} was skipped: {where} was not finite")

    # -- validation

    def validate(self) -> None:
        """Measure, note what was gained, save."""
        standing = self.standing
        with self.average.applied(self.model) if self.average else nullcontext():
            results = self.measure()
        gain = standing.note(results, results[self.select_by], sign=self.sign, keep=self.settings.keep)
        self.display.validated(step=standing.step, results=results, best=gain)
        self.record({"kind": "valid"}, results)
        self.save()
        if gain and processes.is_lead():
            self.run.publish(self.weights())

    @torch.no_grad()
    def measure(self) -> Results:
        """The loss of the validation set, shared by all processes, and the metrics of the lead."""
        self.training.eval()
        self.seed_with(self.standing.step, VALIDATION)
        plan = self.in_order(self.valid.lengths, self.settings.tokens)
        total = count = nll = likely = 0.0
        numbers = range(processes.rank(), len(plan), processes.world_size())
        if plan.stride:  # one window after the other: the lead reads them all
            numbers = range(len(plan) if processes.is_lead() else 0)
        state: State | None = None
        for number in numbers:
            batch = replace(self.collate(self.valid, plan[number]).to(self.device), state=state)
            with autocast(self.device, self.precision):
                loss: Loss = self.training(batch, self.progress())
            state = loss.state
            total, count = total + loss.total.item(), count + loss.count.item()
            if "nll" in loss.logs:  # perplexity is of the model, not of a smoothed loss, and not of squared errors
                nll, likely = nll + loss.logs["nll"].item(), 1.0
        total, count, nll, likely = processes.sums([total, count, nll, likely], self.device)
        if not count:
            raise SeqloomError("the validation set has no target token to measure: give other validation data")
        results: Results = {"loss": total / count}
        if likely:
            results["perplexity"] = math.exp(min(nll / count, 700.0))
        if self.evaluate and processes.is_lead():
            metrics, samples = self.evaluate(self.model)
            results.update({name: float(value) for name, value in metrics.items()})
            for sample in samples:
                self.display.sample(*sample)
        self.training.train()
        results = processes.share(results, self.device)
        if self.select_by not in results:
            raise SeqloomError(
                f'train.select_by = "{self.select_by}" is not measured here{nearest(self.select_by, results)}'
            )
        return results

    def finish(self, stopped: str) -> Results:
        """Give the model, and the run folder, the best weights there are."""
        processes.wait()  # for the lead's last checkpoint, which all of them read
        best = self.standing.best
        if not best:  # interrupted before the first validation: better these than none
            if processes.is_lead():
                self.run.publish(self.weights())
            processes.wait()
            return {}
        weights.load(self.model, self.run.checkpoint(best[0]["step"]).model(), "the best checkpoint")
        results: Results = best[0]["results"]
        count = min(self.settings.average, len(best))
        if count > 1 and stopped != "interrupted":
            averaged = weights.average([self.run.checkpoint(entry["step"]).path for entry in best[:count]])
            weights.load(self.model, averaged, "the average")
            of_average = self.measure()
            self.record({"kind": "valid", "average": count}, of_average)
            if self.sign * of_average[self.select_by] > self.sign * best[0]["value"]:
                self.display.say(f"the average of the {count} best checkpoints is better than each: it is kept")
                results = of_average
            else:
                weights.load(self.model, self.run.checkpoint(best[0]["step"]).model(), "the best checkpoint")
        if processes.is_lead():
            self.run.publish(weights.weights_of(self.model))
        processes.wait()  # nobody leaves before the folder is complete
        return results

    # -- saving and resuming

    def save(self) -> None:
        """A checkpoint of this moment. Its model is the one to predict with; what differs in training is beside it."""
        carried = processes.gathered(self.carried)
        if not processes.is_lead():
            return
        tensors, scalars = self.optimiser.state()
        tensors |= {f"carried/{name}": value for name, value in flatten(carried).items()}
        for name, value in weights.weights_of(self.training).items():
            if self.average or not name.startswith("model."):
                tensors[f"{name}/weight"] = value
        standing = replace(self.standing, seconds=self.seconds(), metrics=self.run.metrics_size())
        trainer = {"standing": asdict(standing), "scalars": scalars, "order": self.order()}
        self.run.save(standing.step, model=self.weights(), optimiser=tensors, trainer=trainer)
        self.run.prune(entry["step"] for entry in standing.best)

    def resume(self) -> None:
        """Go on from the newest checkpoint, if there is one."""
        newest = self.run.newest()
        if self.device.type == "cpu":  # before anything is computed: sums depend on it to the last bit
            choose_threads(self.settings.threads, self.run.threads() if newest else 0)
        if newest:
            trainer, tensors = newest.trainer(), newest.optimiser()
            origin = newest.path / "optimiser.safetensors"
            stored = {key.removesuffix("/weight"): value for key, value in tensors.items() if key.endswith("/weight")}
            carried = {key: value.to(self.device) for key, value in tensors.items() if key.startswith("carried/")}
            self.carried = processes.own(nest(carried).get("carried", {}))
            states = {
                key: value
                for key, value in tensors.items()
                if not key.endswith("/weight") and not key.startswith("carried/")
            }
            model = newest.model()
            complete = {f"model.{name}": value for name, value in model.items()} | stored
            before = trainer["order"]
            if before["optimiser"] != self.settings.optimiser or before["ema"] != bool(self.settings.ema):
                raise SeqloomError(
                    f"{newest.path}: was trained with optimiser {before['optimiser']} and "
                    f"ema {'on' if before['ema'] else 'off'}; resume with these, or begin another run"
                )
            weights.load(self.training, complete, newest.path)
            if self.average:
                self.average.weights = {name: value.to(self.device) for name, value in model.items()}
            self.optimiser.load(states, trainer["scalars"], str(origin))
            self.standing = Standing(**trainer["standing"])
            changed = [name for name, value in self.order().items() if before.get(name, value) != value]
            if changed:
                self.carried = {}
                self.display.say(f"{', '.join(changed)} changed: the batches are not those of an unbroken run")
        if processes.is_lead():
            self.run.truncate_metrics(self.standing.metrics)
            remarks = self.run.note_environment(device=str(self.device), processes=processes.world_size())
            for remark in remarks if newest else ():
                self.display.say(remark)
            if self.standing.best:  # a crash may have come between a checkpoint and its publication
                self.run.publish(self.run.checkpoint(self.standing.best[0]["step"]).model())
        if newest:
            self.display.say(f"resumed at step {self.standing.step}")
        processes.wait()

    def weights(self) -> dict[str, Tensor]:
        """What predictions would use now."""
        return self.average.weights if self.average else weights.weights_of(self.model)

    def order(self) -> dict[str, Any]:
        """What the stored state means something with."""
        return {
            "optimiser": self.settings.optimiser,
            "ema": bool(self.settings.ema),
            "seed": self.seed,
            "tokens": self.settings.tokens,
            "accumulate": self.settings.accumulate,
            "examples": len(self.train),
            "symbols": int(self.train.lengths[:, 1].sum()),
        }

    # -- where training stands

    @property
    def epochs(self) -> float:
        return self.standing.epoch + self.standing.batch / max(len(self.plan), 1)

    def seconds(self) -> float:
        return time.monotonic() - self.began

    def progress(self) -> float:
        standing = self.standing
        return self.settings.progress(step=standing.step, epochs=self.epochs, seconds=standing.seconds)

    def learning_rate(self, progress: float) -> float:
        settings, standing = self.settings, self.standing
        return settings.learning_rate * factor(
            settings.schedule, step=standing.step, warmup=settings.warmup, progress=progress, halvings=standing.halvings
        )

    def plan_of_epoch(self, following: bool = False) -> batching.Plan:
        """The batches of this epoch, or of the one after."""
        if following:
            self.standing.epoch, self.standing.batch = self.standing.epoch + 1, 0
        plan = self.plan_of(self.standing.epoch)
        # A resumed run with other settings may have fewer batches than were used before: on to the next epoch then.
        return plan if self.standing.batch < len(plan) else self.plan_of_epoch(following=True)

    def plan_of(self, epoch: int) -> batching.Plan:
        settings = self.settings
        return self.planned(self.train.lengths, settings.tokens, self.seed, epoch, settings.accumulate)

    def seed_with(self, step: int, place: int) -> None:
        """Make random numbers a function of where they are drawn."""
        entropy = np.random.SeedSequence([self.seed, step, place]).generate_state(1, np.uint64)
        seed = int(entropy[0]) >> 1  # torch takes 63 bits
        if self.device.type == "cpu":  # torch.manual_seed also keeps a traceback for every device that is not there
            torch.default_generator.manual_seed(seed)
        else:
            torch.manual_seed(seed)

    def total_steps(self) -> int | None:
        """How many updates there will be, as far as it can be known."""
        settings, limits = self.settings, []
        if settings.epoch_limit is not None:
            batches = len(self.plan_of(0))
            limits.append(math.ceil(settings.epoch_limit * math.ceil(batches / settings.accumulate)))
        if settings.steps is not None:
            limits.append(settings.steps)
        return min(limits, default=None)

    def reason_to_stop(self) -> str:
        """Why training is over, or nothing."""
        settings, standing = self.settings, self.standing
        if settings.patience and standing.stale >= settings.patience:
            return "patience"
        if settings.steps is not None and standing.step >= settings.steps:
            return "steps"
        if settings.epoch_limit is not None and self.epochs >= settings.epoch_limit:
            return "epochs"
        if settings.minutes is not None and standing.seconds >= settings.minutes * 60:
            return "minutes"
        return "interrupted" if self.interrupted else ""

    def validation_is_due(self) -> bool:
        if self.settings.validate_every:
            return self.standing.step % self.settings.validate_every == 0
        return self.standing.batch == 0

    # -- telling

    def log(self, sums: dict[str, float], learning_rate: float, norm: float) -> None:
        """Tell the display of each step, and the metrics of the mean over the last few."""
        standing, window = self.standing, self.standing.window
        for name, value in sums.items():
            window[name] = window.get(name, 0.0) + value
        elapsed = max(standing.seconds - window.setdefault("since", standing.seconds), 1e-9)
        speed = (window["symbols"] - window.setdefault("first", sums["symbols"])) / elapsed
        self.display.update(
            step=standing.step,
            epoch=standing.epoch,
            loss=sums["total"] / sums["count"],
            rate=speed,
            learning_rate=learning_rate,
            gradient_norm=norm,
        )
        if standing.step % self.settings.log_every == 0:
            logged = {name: window[name] / window["count"] for name in sums if name not in SUMS}
            means = {"loss": window["total"] / window["count"], **logged}
            self.record({"kind": "train"}, {**means, "learning_rate": learning_rate, "gradient_norm": norm}, rate=speed)
            standing.window = {}

    def record(self, head: dict[str, Any], values: Results, **times: float) -> None:
        """A line of metrics.jsonl."""
        if processes.is_lead():
            place = {"step": self.standing.step, "epoch": round(self.epochs, 4)}
            self.run.log({**head, **place, **values, **times, "seconds": round(self.seconds(), 3)})
            if self.track:
                self.track.add(head["kind"], self.standing.step, values)

    def sentence(self, summary: Summary) -> str:
        best = ", ".join(f"{name} {value:.4g}" for name, value in summary.best.items()) or "not validated"
        why = {"patience": "nothing gained any more"}.get(summary.stopped, summary.stopped)
        return f"{summary.steps} steps, {summary.epochs:.2f} epochs, {summary.seconds:.0f} s ({why}): {best}"
