"""What an objective must be able to do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from torch import nn

from seqloom.contracts.data import Task
from seqloom.types import Batch, Loss


class Objective(nn.Module, ABC):
    """What training makes small. Validated, all that compare tokens are the cross-entropy of the targets.

    A constructor may ask, by arguments without a default, for what the program knows: `vocabulary` or `features`,
    `hidden_size` of the decoder, `decode` (tokens -> value) and `constraints` (source -> those of the task).
    """

    compares: ClassVar[str] = "symbols"  # or "vectors": what its targets are made of
    improves: ClassVar[str] = "loss"  # or "outputs": then a metric, not the loss, tells the best checkpoint
    searched: ClassVar[dict[str, Any]] = {}  # settings that a search of its models must have
    needs: ClassVar[str] = ""  # a method of the decoders it can train, where not all have it
    learns: ClassVar[str] = ""  # how names of the weights begin that it trains; all others stay as they are
    asked: Mapping[str, Any] = MappingProxyType({})  # wishes of a prediction with which a validation asks its models

    @abstractmethod
    def forward(self, model: Any, batch: Batch, progress: float) -> Loss:
        """The loss of a batch, as sums. Progress runs from 0 to 1 over the training."""

    def suit(self, task: Task) -> None:
        """Complain, by a ValueError, of a task that it cannot train."""

    def prepare(self, batch: Batch, chance: np.random.Generator) -> Batch:
        """A batch as it is trained on: what is drawn without the model is drawn here, beside the training."""
        return batch
