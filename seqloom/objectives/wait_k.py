"""Wait-k training: cross-entropy of targets written k inputs behind the source (Ma et al. 2019, section 3.2).

k is drawn for each batch, uniformly from `shortest` to `longest`: one model for all of them (multi-path training,
Elbayad, Besacier & Verbeek 2020). Set both to one value for a model of one k.
"""

from __future__ import annotations

import torch

from seqloom.contracts import Objective
from seqloom.nn.combine.wait_k import WaitKDecoder
from seqloom.nn.model import Model
from seqloom.objectives.cross_entropy import CrossEntropy
from seqloom.types import Batch, Loss


class WaitK(Objective):
    """In validation, k is the mean of both. Logs: as cross-entropy."""

    def __init__(self, *, shortest: int = 1, longest: int = 10, label_smoothing: float = 0.0):
        super().__init__()
        if not 1 <= shortest <= longest:
            raise ValueError(f"shortest = {shortest} must be 1 or more, and longest = {longest} not below it")
        self.shortest, self.longest = shortest, longest
        self.predict_options = {"wait": (shortest + longest) // 2}
        self.cross_entropy = CrossEntropy(label_smoothing=label_smoothing)

    def forward(self, model: Model, batch: Batch, progress: float) -> Loss:
        drawn = int(torch.randint(self.shortest, self.longest + 1, ()))
        decoder = WaitKDecoder.of(model, drawn if self.training else self.predict_options["wait"])
        return self.cross_entropy.of(decoder(model.encode(batch.source), batch.inputs), batch)
