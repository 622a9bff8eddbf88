"""Cross-entropy under teacher forcing, with label smoothing.

-(1 - e) log p(gold) - e mean(log p). Szegedy et al. 2016, section 7; the mean is over symbols that can occur.
"""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from seqloom.contracts import Objective
from seqloom.model import Model
from seqloom.types import Batch, Loss


class CrossEntropy(Objective):
    """Logs: nll, the sum of -log p(gold) without smoothing; correct, how often gold was the likeliest."""

    def __init__(self, *, label_smoothing: float = 0.0):
        super().__init__()
        if not 0 <= label_smoothing < 1:
            raise ValueError(f"label_smoothing = {label_smoothing} must be in [0, 1)")
        self.label_smoothing = label_smoothing

    def forward(self, model: Model, batch: Batch, progress: float) -> Loss:
        real = batch.targets.mask
        scores = model(batch).scores[real]  # (N, V)
        targets = batch.targets.values[real]  # (N,)
        nll = cross_entropy(scores, targets, reduction="sum")
        total = nll
        if self.label_smoothing and self.training:
            total = (1 - self.label_smoothing) * nll + self.label_smoothing * uniform_cross_entropy(scores)
        correct = (scores.detach().argmax(-1) == targets).sum()
        return Loss(total, real.sum(), {"nll": nll.detach(), "correct": correct})


def uniform_cross_entropy(scores: Tensor) -> Tensor:
    """The sum over rows of -mean(log p) over the symbols of finite score.  (N, V) -> ()"""
    finite = scores.isfinite()
    mean = scores.masked_fill(~finite, 0).sum(-1) / finite.sum(-1)
    return (torch.logsumexp(scores, dim=-1) - mean).sum()
