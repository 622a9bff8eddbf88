"""Convolutions over time, dilated if wished: of the past alone, with a state, or of both sides.

Computed as one product with `kernel` shifted copies of the input side by side, so that a step and a whole sequence run
the same code. Weight normalisation: Salimans & Kingma 2016, w = g v / |v|, one gain g per output.
"""

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from seqloom.nn.ops.linear import linear, normed_weight
from seqloom.types import Padded


class TimeConvolution(nn.Module, ABC):
    """Output t depends on inputs t - (kernel - 1) * dilation .. t if causal, else on as many, half of them later ones.

    State of a causal one: the last `context` inputs, (rows, context, input_size).
    """

    def __init__(self, *, input_size: int, kernel: int, dilation: int, causal: bool):
        super().__init__()
        if kernel < 1 or dilation < 1:
            raise ValueError(f"kernel = {kernel} and dilation = {dilation} must be 1 or more")
        if not causal and kernel % 2 == 0:
            raise ValueError(f"kernel = {kernel} must be odd, to see as much before a position as after it")
        self.kernel, self.dilation, self.causal, self.input_size = kernel, dilation, causal, input_size
        self.bias: nn.Parameter

    @property
    def context(self) -> int:
        """How many inputs beside its own an output depends on."""
        return (self.kernel - 1) * self.dilation

    def start(self, rows: int) -> Tensor:
        """No input yet: zeros."""
        return self.bias.new_zeros(rows, self.context, self.input_size)

    def forward(self, values: Tensor) -> Tensor:
        """A whole sequence, with zeros around it.  (B, T, input_size) -> (B, T, output_size)"""
        before = self.context if self.causal else self.context // 2
        return self.apply_kernel(pad(values, (0, 0, before, self.context - before)))

    def extend(self, inputs: Padded, before: Tensor) -> tuple[Tensor, Tensor]:
        """More of a sequence: outputs (rows, U, output_size), and the inputs that the next ones depend on."""
        joined, width = torch.cat([before, inputs.values], dim=1), inputs.values.shape[1]
        if not self.context or bool((inputs.lengths == width).all()):
            return self.apply_kernel(joined), joined[:, width:]
        ends = inputs.lengths[:, None] + torch.arange(self.context, device=joined.device)  # those of each row
        after = joined.gather(1, ends[:, :, None].expand(-1, -1, self.input_size))
        return self.apply_kernel(joined), after

    @abstractmethod
    def apply_kernel(self, values: Tensor) -> Tensor:
        """(B, context + T, input_size) -> (B, T, output_size)"""


class Convolution(TimeConvolution):
    """Every output sees all components of its inputs."""

    gain: nn.Parameter | None

    def __init__(
        self,
        *,
        input_size: int,
        output_size: int,
        kernel: int = 3,
        dilation: int = 1,
        causal: bool = True,
        normed: bool = False,
        variance: float = 1.0,
    ):
        """`variance` is that of the outputs when inputs have variance 1."""
        super().__init__(input_size=input_size, kernel=kernel, dilation=dilation, causal=causal)
        self.weight = nn.Parameter(torch.empty(output_size, kernel * input_size))
        self.bias = nn.Parameter(torch.zeros(output_size))
        nn.init.normal_(self.weight, std=math.sqrt(variance / (kernel * input_size)))
        self.gain = nn.Parameter(self.weight.detach().norm(dim=1, keepdim=True)) if normed else None

    def apply_kernel(self, values: Tensor) -> Tensor:
        weight = self.weight if self.gain is None else normed_weight(self.weight, self.gain)
        return linear(windows(values, self.kernel, self.dilation), weight, self.bias)


class SeparableConvolution(TimeConvolution):
    """First over time, each component for itself, then over components, each position for itself (Chollet 2017)."""

    def __init__(self, *, size: int, kernel: int = 3, dilation: int = 1, causal: bool = True):
        super().__init__(input_size=size, kernel=kernel, dilation=dilation, causal=causal)
        self.over_time = nn.Parameter(torch.empty(kernel, size))
        self.weight = nn.Parameter(torch.empty(size, size))
        self.bias = nn.Parameter(torch.zeros(size))
        nn.init.normal_(self.over_time, std=kernel**-0.5)
        nn.init.normal_(self.weight, std=size**-0.5)

    def apply_kernel(self, values: Tensor) -> Tensor:
        seen = windows(values, self.kernel, self.dilation).unflatten(-1, (self.kernel, -1))  # (B, T, kernel, size)
        return linear((seen * self.over_time).sum(2), self.weight, self.bias)


def windows(values: Tensor, kernel: int, dilation: int) -> Tensor:
    """`kernel` values side by side, `dilation` apart.  (B, T + (kernel - 1) * dilation, D) -> (B, T, kernel * D)"""
    width = values.shape[1] - (kernel - 1) * dilation
    return torch.cat([values[:, tap * dilation : tap * dilation + width] for tap in range(kernel)], dim=-1)
