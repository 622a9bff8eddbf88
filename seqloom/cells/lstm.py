"""Long short-term memory.

Hochreiter & Schmidhuber 1997 with the forget gate of Gers, Schmidhuber & Cummins 2000:
    i, f, o = sigmoid(...), g = tanh(...), c = f c' + i g, h = o tanh(c)
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from seqloom.cells.fused import run_kernel
from seqloom.contracts import Cell
from seqloom.types import Padded, State


class LSTM(Cell):
    """The weights live in an `nn.LSTM`, so that whole sequences run through its fused kernel."""

    def __init__(self, *, input_size: int, size: int, forget_bias: float = 1.0):
        super().__init__(input_size=input_size, size=size)
        self.kernel: Any = nn.LSTM(input_size, size, batch_first=True)
        with torch.no_grad():  # gates stand in the order i, f, g, o; of two biases only one is set
            parameters = dict(self.kernel.named_parameters())
            parameters["bias_ih_l0"][size : 2 * size] = forget_bias
            parameters["bias_hh_l0"][size : 2 * size] = 0

    def start(self, rows: int) -> State:
        zeros: Tensor = self.kernel.weight_hh_l0.new_zeros(rows, self.size)
        return {"hidden": zeros, "cell": zeros}

    def project(self, inputs: Tensor) -> Tensor:
        return linear(inputs, self.kernel.weight_ih_l0, self.kernel.bias_ih_l0)  # (..., 4 * size)

    def forward(self, projected: Tensor, state: State) -> tuple[Tensor, State]:
        gates = projected + linear(state["hidden"], self.kernel.weight_hh_l0, self.kernel.bias_hh_l0)
        enter, forget, candidate, leave = gates.chunk(4, dim=-1)
        cell = forget.sigmoid() * state["cell"] + enter.sigmoid() * candidate.tanh()
        hidden = leave.sigmoid() * cell.tanh()
        return hidden, {"hidden": hidden, "cell": cell}

    def run(self, inputs: Padded, state: State) -> tuple[Tensor, State]:
        outputs, (hidden, cell) = run_kernel(self.kernel, inputs, (state["hidden"][None], state["cell"][None]))
        return outputs, {"hidden": hidden[0], "cell": cell[0]}
