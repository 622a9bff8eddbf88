"""Drop-out by cheap random bits.

torch draws a random number per element, which on a CPU is a notable part of an update. We draw sixteen bits per
element, so the drop-out rate is p up to 1/65536.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

LEVELS = 2**16


class Dropout(nn.Module):
    """nn.Dropout, with fused forms for a residual sum and for a ReLU."""

    def __init__(self, p: float = 0.0):
        super().__init__()
        if not 0 <= p < 1:
            raise ValueError(f"dropout = {p} must be in [0, 1)")
        self.p = p

    @property
    def active(self) -> bool:
        return self.training and self.p > 0

    def forward(self, values: Tensor) -> Tensor:
        return values * factors(values, self.p) if self.active else values

    def add(self, values: Tensor, change: Tensor) -> Tensor:
        """values + dropout(change)"""
        return torch.addcmul(values, change, factors(change, self.p)) if self.active else values + change

    def after_relu(self, values: Tensor) -> Tensor:
        """dropout(max(values, 0)); the values are overwritten."""
        if not self.active:
            return values.relu_()
        dropped: Tensor = ReluDropout.apply(values, self.p)
        return dropped


@contextmanager
def without_dropout(model: nn.Module) -> Iterator[None]:
    """Switch drop-out off for a while, and leave everything else of training mode on."""
    layers = [(each, each.p) for each in model.modules() if isinstance(each, Dropout)]
    try:
        for layer, _ in layers:
            layer.p = 0.0
        yield
    finally:
        for layer, p in layers:
            layer.p = p


class ReluDropout(torch.autograd.Function):
    """Keeps no mask: where the output is above 0, the input was above 0 and was kept."""

    @staticmethod
    def forward(context: Any, values: Tensor, p: float) -> Tensor:
        output = values.relu_().mul_(factors(values, p))
        context.mark_dirty(values)
        context.save_for_backward(output)
        context.scale = 1 / (1 - p)
        return output

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (output,) = context.saved_tensors
        return torch.ops.aten.threshold_backward(gradient, output, 0).mul_(context.scale), None


def factors(values: Tensor, p: float) -> Tensor:
    """For each element 0 with probability p, otherwise 1 / (1 - p)."""
    scale = 1 / (1 - p)
    if values.device.type != "cpu":
        return functional.dropout(torch.ones_like(values), p)
    count = values.numel()
    bits = torch.empty(-(-count // 4), dtype=torch.int64).random_(-(2**63), None).view(torch.int16)[:count]
    # kept - bits is at least 1 for elements that stay and at most 0 for others: scaled up, it is clamped to scale or 0.
    spread = 1.0 + scale // 1
    kept = round((1 - p) * LEVELS) - LEVELS // 2
    exact = values.dtype if values.dtype == torch.float64 else torch.float32  # bf16 cannot represent these integers
    scaled = torch.rsub(bits.to(exact), kept * spread, alpha=spread).clamp_(0, scale)
    return scaled.view(values.shape).to(values.dtype)
