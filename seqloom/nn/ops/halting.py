"""Adaptive computation time: a step is repeated until its halting probabilities add up to 1.

Graves 2016, eq. 5 to 14. With s_n the state after n repetitions, y_n its output and h_n = sigmoid(w . y_n + b),
    N = the first n with h_1 + .. + h_n >= 1 - epsilon, or `most`     R = 1 - (h_1 + .. + h_{N-1})
    p_n = h_n for n < N, p_N = R                                       s = sum p_n s_n,  y = sum p_n y_n
    ponder = N + R, N taken as fixed: its gradient is -1 at h_n for n < N, and 0 at h_N
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from seqloom.types import State, over_tensors

RepeatedStep = Callable[[int, State, Tensor], tuple[Tensor, State]]


@dataclass(frozen=True)
class HaltingResult:
    """The outcome of repeating a step."""

    output: Tensor  # (rows, size): the mean of all outputs, weighted by p
    state: State  # the mean of all states, weighted likewise
    ponder: Tensor  # (rows,): N + R
    steps: Tensor  # (rows,): N


class Halting(nn.Module):
    """The halting unit and its loop. The bias starts at 1, so that at first rows halt after a few steps."""

    def __init__(self, *, size: int, most: int = 10, epsilon: float = 0.01):
        super().__init__()
        if most < 1:
            raise ValueError(f"most = {most} must be 1 or more")
        if not 0 <= epsilon <= 1:
            raise ValueError(f"epsilon = {epsilon} must be in [0, 1]")
        self.most, self.epsilon = most, epsilon
        self.unit = nn.Linear(size, 1)
        nn.init.ones_(self.unit.bias)

    def forward(self, step: RepeatedStep, state: State, rows: int) -> HaltingResult:
        """Repeat `step(number, state, running) -> output, state` until every row has halted.

        Rows that have halted are still computed while others run, with weight 0.
        """
        weight = self.unit.weight
        running = torch.ones(rows, dtype=torch.bool, device=weight.device)
        total = weight.new_zeros(rows)
        outputs, states, probabilities, continues, halts = [], [], [], [], []
        for number in range(self.most):
            output, state = step(number, state, running)
            probability = self.unit(output)[:, 0].sigmoid()  # (rows,)
            total = total + probability.detach()
            full = total >= 1 - self.epsilon if number + 1 < self.most else torch.ones_like(running)
            halts.append(running & full)
            running = running & ~full
            outputs.append(output)
            states.append(state)
            probabilities.append(probability)
            continues.append(running)
            if not running.any():
                break
        before = torch.stack(probabilities) * torch.stack(continues)  # (n, rows): h_n for n < N, else 0
        remainder = 1 - before.sum(0)
        weights = (before + torch.stack(halts) * remainder)[:, :, None]  # (n, rows, 1)

        def mean(*values: Tensor) -> Tensor:
            """n times (rows, D) -> (rows, D)"""
            return (torch.stack(values) * weights).sum(0)

        steps = 1 + torch.stack(continues).sum(0).to(remainder.dtype)
        return HaltingResult(mean(*outputs), over_tensors(mean, *states), steps + remainder, steps)
