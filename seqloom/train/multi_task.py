"""Several tasks in one training: their corpora end to end, batches of one task each, an objective for each.

Kaiser et al. 2017, section 2.4: batches of all tasks take turns, in proportion to their shares.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from torch import nn

from seqloom.config.assemble import call
from seqloom.config.build import join_models
from seqloom.config.multi_task import share_of
from seqloom.config.recipes import Recipe
from seqloom.contracts import Codec, Objective, Task
from seqloom.data.batching import ROUNDS, Plan, join_batches
from seqloom.data.corpus import Corpus
from seqloom.data.dataset import Dataset
from seqloom.nn.model import Model
from seqloom.nn.multi_task import MultiTask
from seqloom.types import Batch, Loss


class Corpora:
    """The rows of several corpora, one after the other."""

    def __init__(self, parts: Mapping[str, Corpus]):
        self.parts = dict(parts)
        counts = [len(part) for part in parts.values()]
        self.starts = np.cumsum([0, *counts])  # the first row of each
        numbers = np.repeat(np.arange(len(counts)), counts)[:, None]
        lengths = np.concatenate([np.asarray(part.lengths) for part in parts.values()])
        self.lengths = np.concatenate([lengths, numbers], axis=1)  # (N, 3): source, target, number of the corpus

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, row: int) -> tuple[np.ndarray | None, np.ndarray]:
        name, rows = self.find(np.array([row]))
        return self.parts[name][int(rows[0])]

    def find(self, rows: np.ndarray) -> tuple[str, np.ndarray]:
        """Of rows of one corpus: its name, and their numbers there."""
        number = int(self.lengths[rows[0], 2])
        return list(self.parts)[number], rows - self.starts[number]


class Tasks(Task):
    """Several tasks as one. `shares` are numbers of batches in proportion; None: each example once in an epoch."""

    def __init__(self, tasks: Mapping[str, Task], shares: Mapping[str, float | None]):
        for name, task in tasks.items():
            if task.running:
                raise ValueError(f'tasks.{name}.type = "text": a running text is trained alone; take "pairs"')
        self.tasks, self.shares = dict(tasks), dict(shares)
        self.metrics = tuple(f"{name}/{each}" for name, task in tasks.items() for each in task.metrics)
        self.source = next((task.source for task in tasks.values() if task.source is not None), None)

    @property
    def target(self) -> Codec:  # type: ignore[override]
        """The one with the most tokens: what a guess among all tokens costs at most."""
        return max((task.target for task in self.tasks.values()), key=lambda codec: codec.vocabulary or 0)

    def plan(self, lengths: np.ndarray, tokens: int, seed: int, epoch: int, accumulate: int = 1) -> Plan:
        """An epoch has as many batches as all data has; each task gets its share of them, in a random order."""
        one_epoch = {name: self.batches_of(name, lengths, tokens, seed, epoch * ROUNDS) for name in self.tasks}
        counts = self.counts({name: len(plan) for name, plan in one_epoch.items()})
        batches: list[np.ndarray] = []
        for name, count in counts.items():
            ours, again = one_epoch[name], 0
            while len(ours) < count:
                again += 1
                ours = ours + self.batches_of(name, lengths, tokens, seed, epoch * ROUNDS + again)
            batches += ours[:count]
        order = np.random.default_rng((seed, epoch)).permutation(len(batches))
        return join_batches([batches[place] for place in order])

    def counts(self, natural: dict[str, int]) -> dict[str, int]:
        """How many batches of each task an epoch has: at least one of each."""
        shares = {name: self.shares.get(name) for name in self.tasks}
        fixed = sum(share for share in shares.values() if share is not None)
        if not fixed:
            return natural
        total = sum(natural.values())
        free = sum(natural[name] for name, share in shares.items() if share is None)
        return {
            name: natural[name] if share is None else max(round((total - free) * share / fixed), 1)
            for name, share in shares.items()
        }

    def batches_of(self, name: str, lengths: np.ndarray, tokens: int, seed: int, epoch: int) -> list[np.ndarray]:
        """The batches of one task, their rows counted through all corpora."""
        rows = np.flatnonzero(lengths[:, 2] == list(self.tasks).index(name))
        plan = self.tasks[name].plan(lengths[rows, :2], tokens, seed, epoch)
        return [rows[plan[number]] for number in range(len(plan))]

    def in_order(self, lengths: np.ndarray, tokens: int) -> Plan:
        batches: list[np.ndarray] = []
        for number, task in enumerate(self.tasks.values()):
            rows = np.flatnonzero(lengths[:, 2] == number)
            plan = task.in_order(lengths[rows, :2], tokens)
            batches += [rows[plan[place]] for place in range(len(plan))]
        return join_batches(batches)

    def collate(self, corpus: Corpora, rows: np.ndarray) -> Batch:
        name, own = corpus.find(rows)
        batch = self.tasks[name].collate(corpus.parts[name], own)
        return replace(batch, task=name, examples=tuple(map(int, rows)))

    @property
    def augments(self) -> bool:
        return any(task.augments for task in self.tasks.values())

    def augment(self, batch: Batch, chance: np.random.Generator) -> Batch:
        task = self.tasks[batch.task]
        return task.augment(batch, chance) if task.augments else batch

    def save(self, folder: Path) -> None:
        for name, task in self.tasks.items():
            (folder / name).mkdir()
            task.save(folder / name)

    def load(self, folder: Path) -> Self:
        for name, task in self.tasks.items():
            task.load(folder / name)
        return self

    def higher_is_better(self, name: str) -> bool:
        task, _, metric = name.rpartition("/")
        return metric != "loss" and self.tasks[task].higher_is_better(metric)


class EachTask(Objective):
    """The objective of the task that a batch belongs to."""

    def __init__(self, objectives: Mapping[str, Objective]):
        super().__init__()
        self.objectives = nn.ModuleDict(objectives)
        for name, objective in objectives.items():
            if objective.trains:
                raise ValueError(f"tasks.{name}.objective: trains only some weights; take it for one task alone")

    def of(self, task: str) -> Objective:
        objective: Objective = self.objectives[task]  # type: ignore[assignment]  # all are objectives
        return objective

    @property
    def improves(self) -> str:  # type: ignore[override]
        return "outputs" if any(self.of(name).improves == "outputs" for name in self.objectives) else "loss"

    def forward(self, model: MultiTask, batch: Batch, progress: float) -> Loss:
        loss: Loss = self.of(batch.task)(model.of(batch.task), batch, progress)
        return loss

    def prepare(self, batch: Batch, chance: np.random.Generator) -> Batch:
        return self.of(batch.task).prepare(batch, chance)


@dataclass(frozen=True)
class Part:
    """What a training has of one task, or of all of them as one."""

    task: Task
    data: Dataset
    model: Model | MultiTask
    objective: Objective


def join(recipe: Recipe, parts: Mapping[str, Part]) -> Part:
    """Several tasks as one."""
    tasks = {name: part.task for name, part in parts.items()}
    models: Any = {name: part.model for name, part in parts.items()}
    objectives = {"objectives": {name: part.objective for name, part in parts.items()}}
    return Part(
        call(
            Tasks, "the tasks do not fit", {"tasks": tasks, "shares": {name: share_of(recipe, name) for name in parts}}
        ),
        join_data({name: part.data for name, part in parts.items()}),
        join_models(models),
        call(EachTask, "the tasks do not fit", objectives),
    )


def join_data(parts: Mapping[str, Dataset]) -> Dataset:
    """The data of all tasks as one; examples to validate with carry the name of their task."""
    examples = [replace(example, task=name) for name, part in parts.items() for example in part.valid_examples]
    train, valid = (Corpora({name: getattr(part, side) for name, part in parts.items()}) for side in ("train", "valid"))
    report = next(iter(parts.values())).report  # of one task: all were shown already
    return Dataset(train, valid, examples, report)  # type: ignore[arg-type]  # they are read as one corpus is
