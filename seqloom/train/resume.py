"""Save a training and resume it: a resumed training equals an unbroken one bit for bit.

A checkpoint is three files:
    model.safetensors       the weights to predict with: their moving average, if there is one
    optimiser.safetensors   the state of the optimiser; as NAME/weight the weights that the first file does not have
                            (those of the objective and, beside a moving average, those of the model); as carried/...
                            the decoder states of a running text
    trainer.json            "standing": the TrainingState; "scalars": numbers of the optimiser's state; "order": what
                            the batches and the stored state depend on
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import torch

from seqloom.config.settings import Settings
from seqloom.errors import SeqloomError, show
from seqloom.storage import weights
from seqloom.storage.checkpoint import Checkpoint
from seqloom.storage.environment import store_environment
from seqloom.storage.files import RESTORE
from seqloom.storage.run import Run
from seqloom.train import processes
from seqloom.train.batches import Batches
from seqloom.train.optimiser import NamedOptimiser
from seqloom.train.state import Best, TrainingState
from seqloom.train.training import Training
from seqloom.types import State, flatten, nest

WEIGHT, CARRIED = "/weight", "carried/"


@dataclass(frozen=True)
class Checkpointer:
    run: Run
    training: Training
    optimiser: NamedOptimiser
    batches: Batches
    settings: Settings
    state: TrainingState

    def save(self, seconds: float) -> None:
        """Write a checkpoint, and remove those that are neither the newest nor among the best."""
        carried = processes.gather_states(self.batches.carried, self.training.device)  # before the others leave
        if not processes.is_lead():
            return
        tensors, scalars = self.optimiser.state()
        tensors |= {f"{CARRIED}{name}": value for name, value in flatten(carried).items()}
        for name, value in weights.weights_of(self.training).items():
            if self.training.average or not name.startswith("model."):
                tensors[f"{name}{WEIGHT}"] = value
        state = replace(self.state, seconds=seconds, metrics=self.run.metrics_size())
        trainer = {"standing": asdict(state), "scalars": scalars, "order": self.order()}
        self.run.save(state.step, model=self.training.weights(), optimiser=tensors, trainer=trainer)
        self.run.prune(entry["step"] for entry in state.best)

    def resume(self) -> list[str]:
        """Continue from the newest checkpoint that is intact, if there is one; lines for the display."""
        lines = self.run.set_aside_damaged() if processes.is_lead() else []
        processes.wait()
        newest = self.run.newest()
        lines += [*self.load(newest), *processes.unequal_shares(self.settings.accumulate)] if newest else []
        if processes.is_lead():
            self.run.prune(entry["step"] for entry in self.state.best)  # a crash may have come before
            self.run.truncate_metrics(self.state.metrics)
            environment = {"device": str(self.training.device), "processes": processes.world_size()}
            changes = store_environment(self.run.path, **environment)
            lines += changes if newest else []
            if best := best_on_disk(self.run, self.state):  # a crash may have come before their publication
                self.run.publish(self.run.checkpoint(best[0]["step"]).model())
        processes.wait()
        return [*lines, f"resumed at step {self.state.step}"] if newest else []

    def load(self, checkpoint: Checkpoint) -> list[str]:
        """Load a checkpoint, or say why it does not fit; lines for the display."""
        trainer, model, tensors = checkpoint.trainer(), checkpoint.model(), checkpoint.optimiser()
        numbers, device = f"{checkpoint.path / 'trainer.json'}", self.training.device
        before, scalars = (table_of(trainer, name, numbers) for name in ("order", "scalars"))
        if before.get("optimiser") != self.settings.optimiser or before.get("ema") != bool(self.settings.ema):
            raise SeqloomError(
                f"{checkpoint.path}: was trained with optimiser {before.get('optimiser')} and "
                f"ema {'on' if before.get('ema') else 'off'}; resume with these, or begin another run"
            )
        own = {key.removesuffix(WEIGHT): tensors.pop(key) for key in list(tensors) if key.endswith(WEIGHT)}
        carried = {
            key.removeprefix(CARRIED): tensors.pop(key).to(device) for key in list(tensors) if key.startswith(CARRIED)
        }
        named = {name.removeprefix("objective."): own[name].to(device) for name in own if name.startswith("objective.")}
        self.training.objective.make_room(named)
        weights.load(self.training, {f"model.{name}": value for name, value in model.items()} | own, checkpoint.path)
        if self.training.average:
            fitted = weights.fit_weights(self.training.model, model, checkpoint.path)
            self.training.average.weights = {name: value.to(device) for name, value in fitted.items()}
        self.optimiser.load(tensors, scalars, str(checkpoint.path / "optimiser.safetensors"))
        self.state.restore(trainer.get("standing"), f"{numbers}: standing")
        changed = [name for name, value in self.order().items() if before.get(name, value) != value]
        states = carried_states(carried, self.training.model, checkpoint)
        self.batches.carried = {} if changed else processes.own_states(states)
        return [f"{', '.join(changed)} changed: the batches are not those of an unbroken run"] if changed else []

    def order(self) -> dict[str, Any]:
        """What the batches and the stored state depend on."""
        settings, corpus = self.settings, self.batches.corpus
        return {
            "optimiser": settings.optimiser,
            "ema": bool(settings.ema),
            "seed": self.batches.seed,
            "tokens": settings.tokens,
            "accumulate": settings.accumulate,
            "examples": len(corpus),
            "symbols": int(corpus.lengths[:, 1].sum()),
        }


def table_of(trainer: dict[str, Any], name: str, origin: str) -> dict[str, Any]:
    """One of the objects in trainer.json."""
    found = trainer.get(name)
    if not isinstance(found, dict):
        raise SeqloomError(f"{origin}: {name} = {show(found)}: expected an object; {RESTORE}")
    return found


def carried_states(tensors: weights.Weights, model: Any, checkpoint: Checkpoint) -> State:
    """The states of a running text, by the places of micro-batches in their update."""
    if not tensors:
        return {}
    with torch.no_grad():
        first = flatten(model.decoder.start(model.encode(None, 1)))
    shapes = {name: value.shape[1:] for name, value in first.items()}  # without rows
    for place in {name.partition("/")[0] for name in tensors}:
        found = {name: tensors[key].shape[1:] for name in shapes if (key := f"{place}/{name}") in tensors}
        tables = any(key.startswith(f"{place}/{name}/") for name in shapes for key in tensors)
        if not place.isdecimal() or found != shapes or tables:
            raise SeqloomError(f"{checkpoint.path}: {CARRIED}{place} is no state of this decoder; {RESTORE}")
    return nest(tensors)


def best_on_disk(run: Run, state: TrainingState) -> list[Best]:
    """The best validations whose checkpoints are there: after a damage some may not be, until they are made again."""
    return [entry for entry in state.best if run.checkpoint(entry["step"]).path.is_dir()]


def kept_checkpoints(run: Run) -> list[Checkpoint]:
    """The newest checkpoint and the best before it, oldest first. A kill may have left others that nobody counts on."""
    if (newest := run.newest()) is None:
        return []
    try:
        best = {entry["step"] for entry in newest.trainer()["standing"]["best"]}
    except (KeyError, TypeError):
        raise SeqloomError(f"{newest.path / 'trainer.json'}: expected standing.best, a list of steps") from None
    return [each for each in run.checkpoints() if each.step in best or each == newest]
