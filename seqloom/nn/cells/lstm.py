"""Long short-term memory.

Hochreiter & Schmidhuber 1997 with the forget gate of Gers, Schmidhuber & Cummins 2000:
    i, f, o = sigmoid(...), g = tanh(...), c = f c' + i g, h = o tanh(c)
`without` fixes one gate to 1 and has no weights for it (Jozefowicz, Zaremba & Sutskever 2015: LSTM-f, -i, -o);
`forget_bias` = 1 is their LSTM-b.
"""

from typing import Any, Literal

import torch
from torch import Tensor, nn

from seqloom.contracts import Cell
from seqloom.nn.cells.fused import run_kernel
from seqloom.nn.ops.linear import linear, plus_linear
from seqloom.types import Padded, State

GATES = ("input", "forget", "candidate", "output")  # in torch's order


class LSTM(Cell):
    """The weights are those of an `nn.LSTM`; with all gates, whole sequences run through its fused kernel."""

    def __init__(
        self,
        *,
        input_size: int,
        size: int,
        forget_bias: float = 1.0,
        without: Literal["forget", "input", "output"] | None = None,
    ):
        super().__init__(input_size=input_size, size=size)
        self.gates = tuple(gate for gate in GATES if gate != without)
        self.kernel: Any = nn.LSTM(input_size, size, batch_first=True)
        parameters = dict(self.kernel.named_parameters())
        with torch.no_grad():  # torch has two biases per gate: set one, zero the other
            parameters["bias_ih_l0"][size : 2 * size] = forget_bias
            parameters["bias_hh_l0"][size : 2 * size] = 0
        if without is not None:  # torch has no kernel with three gates
            rows = torch.arange(4 * size).view(4, size)[[GATES.index(gate) for gate in self.gates]].flatten()
            self.kernel = nn.ParameterDict({name: value.detach()[rows] for name, value in parameters.items()})

    def start(self, rows: int) -> State:
        zeros: Tensor = self.kernel.weight_hh_l0.new_zeros(rows, self.size)
        return {"hidden": zeros, "cell": zeros}

    def project(self, inputs: Tensor) -> Tensor:
        bias = self.kernel.bias_ih_l0 + self.kernel.bias_hh_l0
        return linear(inputs, self.kernel.weight_ih_l0, bias)  # (..., gates * size)

    def forward(self, projected: Tensor, state: State) -> tuple[Tensor, State]:
        values = plus_linear(projected, state["hidden"], self.kernel.weight_hh_l0)
        gates = dict(zip(self.gates, values.chunk(len(self.gates), dim=-1)))

        def apply_gate(gate: str, value: Tensor) -> Tensor:
            return gates[gate].sigmoid() * value if gate in gates else value

        cell = apply_gate("forget", state["cell"]) + apply_gate("input", gates["candidate"].tanh())
        hidden = apply_gate("output", cell.tanh())
        return hidden, {"hidden": hidden, "cell": cell}

    def run(self, inputs: Padded, state: State) -> tuple[Tensor, State]:
        if len(self.gates) < len(GATES):
            return super().run(inputs, state)
        return run_kernel(self.kernel, inputs, state)
