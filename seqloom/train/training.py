"""Model and objective in one module, and how they are computed: device, precision, random numbers."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from seqloom.compute.precision import autocast
from seqloom.contracts import Objective
from seqloom.storage.weights import Weights, weights_of
from seqloom.train.averaging import MovingAverage
from seqloom.types import Batch, Loss

CPU = torch.device("cpu")


class Training(nn.Module):
    """From a batch to its loss, with every parameter that is trained: the model's and the objective's."""

    def __init__(
        self,
        model: nn.Module,
        objective: Objective,
        *,
        device: torch.device = CPU,
        precision: torch.dtype = torch.float32,
        seed: int = 0,
        ema: float = 0.0,
    ):
        super().__init__()
        self.model, self.objective = model, objective
        self.to(device)
        self.device, self.precision, self.seed = device, precision, seed
        self.average = MovingAverage(model, ema) if ema else None
        self.first_phase = False  # of a training whose encoder has one

    def forward(self, batch: Batch, progress: float = 1.0) -> Loss:
        """The loss when that share of the training is over."""
        with autocast(self.device, self.precision):
            loss: Loss = self.objective(self.model, batch.with_progress(progress, self.first_phase), progress)
        return loss

    def seed_random_numbers(self, step: int, place: int) -> None:
        """Make drop-out and sampling a function of the seed, the step and the place of a micro-batch in its update."""
        entropy = np.random.SeedSequence([self.seed, step, place]).generate_state(1, np.uint64)
        seed = int(entropy[0]) >> 1  # torch takes 63 bits
        if self.device.type == "cpu":  # torch.manual_seed also keeps a traceback for every device that is not there
            torch.default_generator.manual_seed(seed)
        else:
            torch.manual_seed(seed)

    def weights(self) -> Weights:
        """The weights to predict with: their moving average, if there is one."""
        return self.average.weights if self.average else weights_of(self.model)
