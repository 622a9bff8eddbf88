"""Gated recurrent unit.

Cho et al. 2014 (`reset="before"`):  h = (1 - z) h' + z tanh(W x + U (r * h')), z as in Chung et al. 2014
torch and cuDNN   (`reset="after"`):  h = z h' + (1 - z) tanh(W x + r * (U h'))
The two differ in where the reset gate acts; that z and 1 - z are exchanged is only a matter of names.
"""

from typing import Any, Literal

import torch
from torch import Tensor, nn

from seqloom.contracts import Cell
from seqloom.nn.cells.fused import run_kernel
from seqloom.nn.ops.linear import linear
from seqloom.types import Padded, State


class GRU(Cell):
    """The weights are those of an `nn.GRU`; the torch variant runs through its fused kernel."""

    def __init__(self, *, input_size: int, size: int, reset: Literal["before", "after"] = "after"):
        super().__init__(input_size=input_size, size=size)
        self.reset = reset
        self.kernel: Any = nn.GRU(input_size, size, batch_first=True)

    def start(self, rows: int) -> State:
        return {"hidden": self.kernel.weight_hh_l0.new_zeros(rows, self.size)}

    def project(self, inputs: Tensor) -> Tensor:
        bias = self.kernel.bias_ih_l0
        if self.reset == "before":  # with "after", the reset gate also applies to the candidate's second bias
            bias = bias + self.kernel.bias_hh_l0
        return linear(inputs, self.kernel.weight_ih_l0, bias)  # (..., 3 * size): r, z, candidate

    def forward(self, projected: Tensor, state: State) -> tuple[Tensor, State]:
        before, parts = state["hidden"], [2 * self.size, self.size]  # the gates; the candidate
        gates, candidate = projected.split(parts, dim=-1)
        if self.reset == "before":
            weights = self.kernel.weight_hh_l0.split(parts)
            reset, update = torch.addmm(gates, before, weights[0].t()).sigmoid().chunk(2, dim=-1)
            candidate = torch.addmm(candidate, reset * before, weights[1].t()).tanh()
            hidden = before + update * (candidate - before)
        else:
            recurrent = linear(before, self.kernel.weight_hh_l0, self.kernel.bias_hh_l0).split(parts, dim=-1)
            reset, update = (gates + recurrent[0]).sigmoid().chunk(2, dim=-1)
            candidate = torch.tanh(candidate + reset * recurrent[1])
            hidden = candidate + update * (before - candidate)
        return hidden, {"hidden": hidden}

    def run(self, inputs: Padded, state: State) -> tuple[Tensor, State]:
        if self.reset == "before":
            return super().run(inputs, state)
        return run_kernel(self.kernel, inputs, state)
