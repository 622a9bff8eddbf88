"""Cross-entropy under teacher forcing, with label smoothing.

-(1 - e) log p(gold) - e mean(log p). Szegedy et al. 2016, section 7; the mean is over symbols that can occur.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from seqloom.contracts import Objective
from seqloom.model import Model
from seqloom.types import Batch, Loss, detach


class CrossEntropy(Objective):
    """Logs: nll, the sum of -log p(gold) without smoothing; correct, how often gold was the likeliest."""

    def __init__(self, *, label_smoothing: float = 0.0):
        super().__init__()
        if not 0 <= label_smoothing < 1:
            raise ValueError(f"label_smoothing = {label_smoothing} must be in [0, 1)")
        self.label_smoothing = label_smoothing

    def forward(self, model: Model, batch: Batch, progress: float) -> Loss:
        real = batch.targets.mask
        output = model(batch)
        scores = output.project(output.hidden[real])  # (N, V): no work on padding
        if scores.dtype in (torch.bfloat16, torch.float16):
            scores = scores.float()  # a sum of many losses needs the digits
        targets = batch.targets.values[real]  # (N,)
        smoothing = self.label_smoothing if self.training else 0.0
        total, nll = smoothed_cross_entropy(scores, targets, smoothing)
        correct = (scores.detach().argmax(-1) == targets).sum()
        state = detach(output.state) if batch.carry else None
        return Loss(total, real.sum(), {"nll": nll, "correct": correct}, state)


def smoothed_cross_entropy(scores: Tensor, targets: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """Sums over rows of the smoothed loss and of -log p(gold); the latter has no gradient.  (N, V), (N,)"""
    total, nll = SmoothedCrossEntropy.apply(scores, targets, smoothing)
    return total, nll


class SmoothedCrossEntropy(torch.autograd.Function):
    """With its gradient by hand, p - (1 - e) gold - e / symbols: a third of the passes over (N, V) autograd makes."""

    @staticmethod
    def forward(context: Any, scores: Tensor, targets: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
        normaliser = torch.logsumexp(scores, dim=-1)  # (N,)
        nll = (normaliser - scores.gather(1, targets[:, None])[:, 0]).sum()
        total, symbols = nll.clone(), None
        if smoothing:
            mean = scores.mean(dim=-1)
            if not mean.isfinite().all():  # some symbols cannot occur: they take no share
                symbols = scores.isfinite()
                mean = scores.masked_fill(~symbols, 0).sum(-1) / symbols.sum(-1)
            total = (1 - smoothing) * nll + smoothing * (normaliser - mean).sum()
        context.save_for_backward(scores, targets, normaliser, symbols)
        context.smoothing = smoothing
        context.mark_non_differentiable(nll)
        return total, nll

    @staticmethod
    @once_differentiable
    def backward(context: Any, scale: Tensor, _: Tensor) -> tuple[Tensor, None, None]:
        scores, targets, normaliser, symbols = context.saved_tensors
        gradient = (scores - normaliser[:, None]).exp_()  # (N, V): p
        if context.smoothing:
            if symbols is None:
                gradient.sub_(context.smoothing / scores.shape[-1])
            else:
                gradient.sub_(symbols * (context.smoothing / symbols.sum(-1, keepdim=True)))
        gradient.scatter_add_(1, targets[:, None], gradient.new_full((len(targets), 1), context.smoothing - 1))
        return gradient.mul_(scale), None, None
