"""What an objective must be able to do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from torch import Tensor, nn

from seqloom.contracts.data import Task
from seqloom.contracts.parts import Decoder, Head
from seqloom.contracts.search import Search
from seqloom.types import Batch, Loss


class Objective(nn.Module, ABC):
    """The loss to minimise. In validation, every objective over tokens is the cross-entropy of the targets.

    A constructor may ask, by arguments without a default, for what the program knows: `vocabulary` or `features`,
    `hidden_size` of the decoder, `decode` (tokens -> value) and `constraints` (source -> those of the task).
    """

    improves: ClassVar[str] = "loss"  # or "outputs": then a metric, not the loss, chooses the best checkpoint
    trains: ClassVar[str] = ""  # the names of the weights that it trains begin with this; all others stay as they are
    steps: ClassVar[bool] = False  # whether it needs a decoder that writes token by token, which a head does not
    predict_options: Mapping[str, Any] = MappingProxyType({})  # with which a validation predicts

    @abstractmethod
    def forward(self, model: Any, batch: Batch, progress: float) -> Loss:
        """The loss of a batch, as sums. Progress runs from 0 to 1 over the training."""

    def suit(self, task: Task, decoder: Decoder, search: Search) -> None:
        """Raise a ValueError, one line, for a task, decoder or search that it cannot train for."""
        name = type(self).__module__.rpartition(".")[2]
        if task.target.is_vectors:
            raise ValueError(
                'compares tokens, but task.target is made of vectors; take "squared_error" or "likelihood"'
            )
        if decoder.trained_by and decoder.trained_by != name:
            raise ValueError(f'cannot train this decoder; take objective.type = "{decoder.trained_by}"')
        if self.steps and isinstance(decoder, Head):
            raise ValueError(
                'needs a decoder that writes token by token, and this one answers at once; take "cross_entropy"'
            )
        if self.improves == "outputs" and task.source is None:
            raise ValueError("improves answers to sources, which a language model does not have")

    def make_room(self, stored: Mapping[str, Tensor]) -> None:
        """Before a training is resumed: make room for stored weights that the constructor could not know of."""

    def prepare(self, batch: Batch, chance: np.random.Generator) -> Batch:
        """The batch as it is trained on: random draws that need no model are made here, in the prefetching thread."""
        return batch
