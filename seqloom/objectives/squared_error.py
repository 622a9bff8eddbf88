"""Squared error: sum (y - f(x))^2 over all components of all targets, which are counted: the loss is their mean."""

import torch

from seqloom.contracts import Decoder, Objective, Search, Task
from seqloom.nn.model import Model
from seqloom.types import Batch, Loss


class SquaredError(Objective):
    """For targets that are vectors. Padding is left out."""

    def __init__(self) -> None:
        super().__init__()

    def suit(self, task: Task, decoder: Decoder, search: Search) -> None:
        if not task.target.is_vectors:
            raise ValueError("compares vectors, but task.target is made of tokens; take another objective")
        if decoder.trained_by:
            raise ValueError(f'cannot train this decoder; take objective.type = "{decoder.trained_by}"')

    def forward(self, model: Model, batch: Batch, progress: float) -> Loss:
        real = batch.targets.mask
        output = model(batch)
        targets = batch.targets.values[real]  # (N, F)
        errors = output.project(output.hidden[real]).to(targets.dtype) - targets  # (N, F)
        return Loss(errors.square().sum(), torch.tensor(errors.numel(), device=errors.device))
