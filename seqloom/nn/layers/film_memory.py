"""What is kept of the frames before, as a map of each place: a convolutional LSTM, or an LSTM that has no places.

Shi et al. 2015; Srivastava, Mansimov & Salakhutdinov 2015, whose LSTM also rebuilt the frames that it had read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from seqloom.nn.cells.lstm import LSTM
from seqloom.nn.ops.maps import updated
from seqloom.types import State


class FilmMemory(nn.Module, ABC):
    """Takes the features of frames one after another. State: {"hidden": ..., "cell": ...}, rows first."""

    @abstractmethod
    def start(self, rows: int, height: int, width: int) -> State:
        """Before the first frame: zeros."""

    @abstractmethod
    def step(self, frame: Tensor, state: State) -> State:
        """The state after one more frame.  (B, inputs, H, W)"""

    @abstractmethod
    def maps(self, state: State, height: int, width: int) -> Tensor:
        """What it tells of each place.  (B, size, H, W)"""


class ConvolutionalLSTM(FilmMemory):
    """An LSTM at each place, which sees the states around it; without peepholes.

    [i f o g] = W_x * x + W_h * h,  c' = sigmoid(f) c + sigmoid(i) tanh(g),  h' = sigmoid(o) tanh(c')
    """

    def __init__(self, inputs: int, *, size: int, kernel: int, places: int, width: int):
        super().__init__()
        self.size = size
        self.gates = nn.Conv2d(inputs + size, 4 * size, kernel, padding=kernel // 2)
        if self.gates.bias is not None:
            nn.init.ones_(self.gates.bias[size : 2 * size])  # remember

    def start(self, rows: int, height: int, width: int) -> State:
        nothing = self.gates.weight.new_zeros(rows, self.size, height, width)
        return {"hidden": nothing, "cell": nothing}

    def step(self, frame: Tensor, state: State) -> State:
        hidden, cell = updated(self.gates(torch.cat([frame, state["hidden"]], dim=1)), state["cell"])
        return {"hidden": hidden, "cell": cell}

    def maps(self, state: State, height: int, width: int) -> Tensor:
        hidden: Tensor = state["hidden"]
        return hidden


class VectorLSTM(FilmMemory):
    """An LSTM of `width` units that reads a frame as one vector, and tells of all places as one vector."""

    def __init__(self, inputs: int, *, size: int, kernel: int, places: int, width: int):
        super().__init__()
        self.size, self.cell = size, LSTM(input_size=places * inputs, size=width)
        self.leave = nn.Linear(width, places * size)

    def start(self, rows: int, height: int, width: int) -> State:
        return self.cell.start(rows)

    def step(self, frame: Tensor, state: State) -> State:
        return self.cell(self.cell.project(frame.flatten(1)), state)[1]

    def maps(self, state: State, height: int, width: int) -> Tensor:
        found: Tensor = self.leave(state["hidden"])
        return found.unflatten(1, (self.size, height, width))
