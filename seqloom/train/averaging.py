"""The moving average of a model's weights over its training (Polyak & Juditsky 1992).

average <- decay * average + (1 - decay) * weights, where the decay of step n is at most (1 + n) / (10 + n), so that
the random initial weights soon fade.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from seqloom.storage.weights import Weights, load, weights_of


class MovingAverage:
    def __init__(self, module: nn.Module, decay: float):
        self.decay = decay
        self.weights: Weights = {name: value.detach().clone() for name, value in weights_of(module).items()}

    @torch.no_grad()
    def update(self, module: nn.Module, step: int) -> None:
        decay = min(self.decay, (1 + step) / (10 + step))
        for name, value in weights_of(module).items():
            if value.is_floating_point():
                self.weights[name].lerp_(value, 1 - decay)
            else:
                self.weights[name].copy_(value)

    @contextmanager
    def applied(self, module: nn.Module) -> Iterator[None]:
        """Within the block, the module has the averaged weights."""
        own = {name: value.detach().clone() for name, value in weights_of(module).items()}
        load(module, self.weights, "the moving average")
        try:
            yield
        finally:
            load(module, own, "the trained weights")
