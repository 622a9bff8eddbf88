"""Elman's simple recurrent network: h = tanh(W x + U h' + b), or the logistic function in place of tanh.

Elman 1990. dh_t / dh_{t-1} = diag(phi') U: a product of many such factors vanishes or explodes.
"""

from typing import Any, Literal

import torch
from torch import Tensor, nn

from seqloom.contracts import Cell
from seqloom.nn.cells.fused import run_kernel
from seqloom.nn.ops.linear import linear
from seqloom.types import Padded, State


class Elman(Cell):
    """The weights are those of an `nn.RNN`; with tanh, whole sequences run through its fused kernel."""

    def __init__(self, *, input_size: int, size: int, activation: Literal["tanh", "sigmoid"] = "tanh"):
        super().__init__(input_size=input_size, size=size)
        self.activation = activation
        self.kernel: Any = nn.RNN(input_size, size, batch_first=True)

    def start(self, rows: int) -> State:
        return {"hidden": self.kernel.weight_hh_l0.new_zeros(rows, self.size)}

    def project(self, inputs: Tensor) -> Tensor:
        return linear(inputs, self.kernel.weight_ih_l0, self.kernel.bias_ih_l0 + self.kernel.bias_hh_l0)  # (..., size)

    def forward(self, projected: Tensor, state: State) -> tuple[Tensor, State]:
        preactivation = torch.addmm(projected, state["hidden"], self.kernel.weight_hh_l0.t())
        hidden = torch.tanh(preactivation) if self.activation == "tanh" else torch.sigmoid(preactivation)
        return hidden, {"hidden": hidden}

    def run(self, inputs: Padded, state: State) -> tuple[Tensor, State]:
        if self.activation != "tanh":
            return super().run(inputs, state)
        return run_kernel(self.kernel, inputs, state)
