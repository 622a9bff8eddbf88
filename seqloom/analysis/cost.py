"""What a training costs: its FLOPs per target token, counted on batches from short to long.

One forward and backward pass of a few batches, spread evenly over the widths of an epoch, gives FLOPs per target token;
times the target tokens of all epochs, it is the cost of the training. Drawn outputs of objectives count too.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seqloom.analysis.flops import count_flops
from seqloom.config.build import build_objective
from seqloom.config.complete import complete
from seqloom.config.settings import build_settings
from seqloom.errors import SeqloomError
from seqloom.inference.system import System
from seqloom.predictor import Predictor
from seqloom.storage.history import History
from seqloom.storage.run import Run
from seqloom.train.batches import Batches, changes_of
from seqloom.train.forecast import MIDDLE, spread
from seqloom.train.multi_task import Part, join
from seqloom.train.planning import Ready
from seqloom.train.prepare import prepare_data
from seqloom.train.state import TrainingState
from seqloom.train.training import Training
from seqloom.types import Batch

SAMPLE = 7  # batches: 1/8 to 7/8 of the way from the narrowest to the widest


@dataclass(frozen=True)
class TrainingCost:
    """FLOPs of an epoch, from a sample of its batches."""

    per_token: float  # of targets
    tokens: float  # target tokens of an epoch, with EOS
    activations: int  # bytes that the widest batch of the sample keeps for its backward pass

    def of(self, epochs: float) -> float:
        """FLOPs of a training."""
        return self.per_token * self.tokens * epochs


def training_flops(path: str | Path, trust: bool = False) -> float:
    """FLOPs of the training of a run folder, with those of the run that it started from."""
    history = History.read(path)
    found = training_cost(ready_of(Predictor.load(path, "cpu", trust))).of(epochs_of(history))
    earlier = history.recipe.get("init")
    return found + (training_flops(earlier, trust) if earlier else 0.0)


def epochs_of(history: History) -> float:
    """How many epochs a run was trained for."""
    return max((float(line.get("epoch") or 0) for line in history.lines), default=0.0)


def ready_of(model: Predictor) -> Ready:
    """A trained run with its training data, as if it were to be trained."""
    parts = {name: part_of(system) for name, system in model.systems.items()}
    first = next(iter(model.systems.values()))
    if "" in parts:
        recipe, whole = first.recipe, parts[""]
    else:
        assert first.path is not None
        recipe = complete(Run.open(first.path).recipe(), str(first.path / "config.toml"), first.trust)
        whole = join(recipe, parts)
    return Ready(recipe, whole.task, whole.data, whole.model, whole.objective, first.trust)


def part_of(system: System) -> Part:
    """One task of a run."""
    recipe, task = system.recipe, system.task
    if recipe["data"].get("train") is None:
        raise SeqloomError(f"{system.path}: was not trained on files, so its training data is not known; give --data")
    data = prepare_data(recipe, task, None, None, fit=False)
    return Part(task, data, system.model, build_objective(recipe, task, system.model.decoder, system.trust))


def training_cost(ready: Ready, sample: int | None = SAMPLE) -> TrainingCost:
    """The cost of an epoch on the data of a training; a sample of None takes every batch."""
    batches = batches_of(ready)
    batches.start()
    plan, lengths = batches.plan, np.asarray(ready.data.train.lengths)
    order = list(islice(spread(plan, ready.data.train), 1, None))  # the first repeats one of the others
    numbers = range(len(plan)) if sample is None else order[:sample]
    made = [batches.make(0, number) for number in numbers]
    training = training_of(ready)
    flops = sum(step_flops(training, batch) for batch in made)
    tokens = sum(target_tokens(batch) for batch in made)
    if plan.rows.ndim > 1:  # windows of a text are all alike
        total = tokens / len(made) * len(plan)
    else:  # each example has as many tokens more than its target: EOS, or none
        rows = np.concatenate([plan[number] for number in numbers])
        more = (tokens - lengths[rows, 1].sum()) / len(rows)
        total = float(lengths[plan.rows, 1].sum() + more * len(plan.rows))
    widest = max(made, key=lambda batch: batch.targets.values.numel())
    return TrainingCost(flops / tokens, total, activation_bytes(training, widest))


def training_of(ready: Ready) -> Training:
    """Model and objective, with gradients where a training has them."""
    training = Training(ready.model, ready.objective, seed=ready.recipe["seed"]).train()
    for name, parameter in ready.model.named_parameters():
        parameter.requires_grad_(name.startswith(ready.objective.trains))
    return training


def batches_of(ready: Ready) -> Batches:
    return Batches(
        ready.data.train,
        collate=ready.task.collate,
        plan=ready.task.plan,
        changes=changes_of(ready.task.augment if ready.task.augments else None, ready.objective),
        settings=build_settings(ready.recipe),
        seed=ready.recipe["seed"],
        state=TrainingState(),
    )


def target_tokens(batch: Batch) -> int:
    return int(batch.targets.lengths.sum())


def step_flops(training: Training, batch: Batch) -> int:
    """One forward and backward pass, in the middle of a training: some objectives change on the way."""
    with torch.random.fork_rng(devices=[]):
        training.seed_random_numbers(1, 0)
        found = count_flops(lambda: training(batch, MIDDLE).total.backward())
    training.zero_grad(set_to_none=True)
    return found


def activation_bytes(training: Training, batch: Batch) -> int:
    """What a forward pass keeps for the backward pass, without weights and what several operations share."""
    own = {weight.untyped_storage().data_ptr() for weight in training.parameters()}
    kept: dict[int, int] = {}

    def keep(value: Tensor) -> Tensor:
        storage = value.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return value

    with torch.random.fork_rng(devices=[]), torch.autograd.graph.saved_tensors_hooks(keep, lambda value: value):
        training.seed_random_numbers(1, 0)
        loss = training(batch, MIDDLE)
    del loss
    return sum(kept.values())


def parameters_by_part(model: Any, depth: int = 2) -> dict[str, int]:
    """Weights by part, shared ones where they come first: {"encoder.embedding": 768000, ...}."""
    found: dict[str, int] = {}
    for name, weight in model.named_parameters():  # names shared weights once
        part = ".".join(name.split(".")[:-1][:depth]) or name
        found[part] = found.get(part, 0) + weight.numel()
    return found
