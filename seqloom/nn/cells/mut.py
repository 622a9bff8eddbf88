"""MUT1, MUT2 and MUT3: three mutations of the gated recurrent unit, the best of an evolutionary search.

Jozefowicz, Zaremba & Sutskever 2015, section 3.5:  h = z * tanh(U_h (r * h') + candidate) + (1 - z) * h'
    1   z = s(W_z x + b_z)                  r = s(W_r x + U_r h' + b_r)   candidate = tanh(x) + b_h
    2   z = s(W_z x + U_z h' + b_z)         r = s(x + U_r h' + b_r)       candidate = W_h x + b_h
    3   z = s(W_z x + U_z tanh(h') + b_z)   r = s(W_r x + U_r h' + b_r)   candidate = W_h x + b_h
Where x has no matrix it must be as wide as h; an input of another width is projected first.
"""

from typing import Literal

import torch
from torch import Tensor, nn

from seqloom.contracts import Cell
from seqloom.types import State


class MUT(Cell):
    """`variant` chooses one of the three."""

    def __init__(self, *, input_size: int, size: int, variant: Literal[1, 2, 3] = 1):
        super().__init__(input_size=input_size, size=size)
        self.variant = variant
        self.match = nn.Linear(input_size, size) if variant != 3 and input_size != size else nn.Identity()
        width = input_size if variant == 3 else size
        self.update = nn.Linear(width, size)
        self.reset = Shift(size) if variant == 2 else nn.Linear(width, size)
        self.candidate = Shift(size) if variant == 1 else nn.Linear(width, size)
        self.recurrent_update = nn.Linear(size, size, bias=False) if variant != 1 else None
        self.recurrent_reset = nn.Linear(size, size, bias=False)
        self.recurrent_candidate = nn.Linear(size, size, bias=False)

    def start(self, rows: int) -> State:
        return {"hidden": self.update.weight.new_zeros(rows, self.size)}

    def project(self, inputs: Tensor) -> Tensor:
        inputs = self.match(inputs)
        squashed = torch.tanh(inputs) if self.variant == 1 else inputs
        return torch.cat([self.update(inputs), self.reset(inputs), self.candidate(squashed)], dim=-1)  # (..., 3 * size)

    def forward(self, projected: Tensor, state: State) -> tuple[Tensor, State]:
        before = state["hidden"]
        update, reset, candidate = projected.chunk(3, dim=-1)
        if self.recurrent_update is not None:
            recurrent = torch.tanh(before) if self.variant == 3 else before
            update = torch.addmm(update, recurrent, self.recurrent_update.weight.t())
        reset = torch.addmm(reset, before, self.recurrent_reset.weight.t()).sigmoid()
        candidate = torch.addmm(candidate, reset * before, self.recurrent_candidate.weight.t()).tanh()
        hidden = before + update.sigmoid() * (candidate - before)
        return hidden, {"hidden": hidden}


class Shift(nn.Module):
    """x + b: in place of a linear layer."""

    def __init__(self, size: int):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(size))

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs + self.bias
