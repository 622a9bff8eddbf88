"""The batches of a training, each a pure function of the seed, the epoch and its number in the epoch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from seqloom.config.settings import Settings
from seqloom.contracts import Objective
from seqloom.data.batching import Plan
from seqloom.train import processes
from seqloom.train.prefetch import Prefetch
from seqloom.train.state import TrainingState
from seqloom.types import Batch, State

if TYPE_CHECKING:
    from seqloom.data.corpus import Corpus

Change = Callable[[Batch, np.random.Generator], Batch]


class Batches:
    """The micro-batches of the current epoch, and the decoder states that a running text carries between them.

    `changes` are applied to each batch with random numbers of its own: augmentation, what an objective samples.
    """

    def __init__(
        self,
        corpus: Corpus,
        *,
        collate: Callable[[Corpus, np.ndarray], Batch],
        plan: Callable[..., Plan],
        changes: Sequence[Change],
        settings: Settings,
        seed: int,
        state: TrainingState,
    ):
        self.corpus, self.collate, self.make_plan, self.changes = corpus, collate, plan, changes
        self.settings, self.seed, self.state = settings, seed, state
        self.carried: dict[str, State] = {}  # by place in the update: decoder states at the end of the last window
        self.prefetch = Prefetch(self.make)

    def start(self) -> None:
        """Plan the epoch in which the training is, before the first update and after a resume."""
        self.plan = self.plan_of(self.state.epoch)
        self.advance()  # resumed with other settings, this epoch may have fewer batches than were used

    def plan_of(self, epoch: int) -> Plan:
        settings = self.settings
        return self.make_plan(self.corpus.lengths, settings.tokens, self.seed, epoch, settings.accumulate)

    def take(self) -> list[int]:
        """The numbers of the micro-batches of the next update; the last update of an epoch may have fewer."""
        first = self.state.batch
        self.state.batch = min(first + self.settings.accumulate, len(self.plan))
        return list(range(first, self.state.batch))

    def get(self, number: int, place: int) -> Batch:
        """The micro-batch of that number, which has that place in its update. Begins to prefetch the next one."""
        batch = self.prefetch.get(self.state.epoch, number)
        following = number + processes.world_size()
        if self.changes and following < len(self.plan):  # collating alone is too little work for a thread
            self.prefetch.begin(self.state.epoch, following)
        return replace(batch, state=self.carried.get(str(place))) if self.plan.continues(number) else batch

    def make(self, epoch: int, number: int) -> Batch:
        batch = self.collate(self.corpus, self.plan[number])
        generator = np.random.default_rng([self.seed, epoch, number])
        for change in self.changes:
            batch = change(batch, generator)
        return batch

    def advance(self) -> None:
        """Go on to the next epoch if this one is used up."""
        while self.state.batch >= len(self.plan):
            self.state.epoch, self.state.batch = self.state.epoch + 1, 0
            self.plan = self.plan_of(self.state.epoch)

    @property
    def epochs(self) -> float:
        """Epochs so far, this one in part."""
        return self.state.epoch + self.state.batch / max(len(self.plan), 1)

    def close(self) -> None:
        self.prefetch.close()


def changes_of(augment: Change | None, objective: Objective) -> list[Change]:
    """What is done to each batch before it is used."""
    prepares = type(objective).prepare is not Objective.prepare
    return [change for change in (augment, objective.prepare if prepares else None) if change]
