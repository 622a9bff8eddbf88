"""PixelCNN and PixelRNN: the pixels of a picture one by one, line by line, each from those before it.

van den Oord, Kalchbrenner & Kavukcuoglu 2016: masked convolutions ("plain"), LSTMs over lines ("row") or along
diagonals ("diagonal"); van den Oord, Kalchbrenner, Vinyals, Espeholt, Graves & Kavukcuoglu 2016: gated convolutions in
two stacks ("gated"). The distribution of a pixel is a softmax over its levels. With an encoder the summary of the
source conditions every layer.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import torch
from torch import Tensor

from seqloom.contracts import Decoder, Encoder, Stepper, Task
from seqloom.nn.layers.drawing import Drawing, Style
from seqloom.types import Memory, Output, Padded, State


class Pixels(Decoder):
    """State: that of a Drawing."""

    endless = True

    def __init__(
        self,
        *,
        vocabulary: int,
        canvas: tuple[int, int, int] | None,
        memory_size: int,
        bos: int,
        eos: int | None,
        style: Style = "gated",
        size: int = 64,
        layers: int = 8,
        kernel: int = 3,
        first_kernel: int = 7,
        embedding_size: int = 8,
        hidden: int = 64,
        dropout: float = 0.0,
    ):
        if canvas is None:
            raise ValueError('writes the pixels of pictures: set task.target.type = "pixels"')
        super().__init__(bos=bos, eos=eos, lengths=(0.0, prod(canvas)))
        self.drawing = Drawing(
            vocabulary=vocabulary,
            canvas=canvas,
            style=style,
            size=size,
            layers=layers,
            kernel=kernel,
            first_kernel=first_kernel,
            embedding_size=embedding_size,
            hidden=hidden,
            condition=memory_size,
            dropout=dropout,
        )
        self.hidden_size = hidden

    def prepare(self, memory: Memory) -> Memory:
        return memory

    def condition(self, memory: Memory, rows: int) -> Tensor | None:
        """The summary of each row's source, the same for all places.  (rows, D, 1, 1)"""
        summary = memory.final.get("summary")
        return None if summary is None else summary.index_select(0, memory.owner(rows))[:, :, None, None]

    def start(self, memory: Memory) -> State:
        return self.drawing.start(memory.rows, self.condition(memory, memory.rows))

    def step(self, token: Tensor, state: State, memory: Memory) -> tuple[Tensor, State]:
        hidden, state = self.drawing.step(self.drawing.embed(token), state, self.condition(memory, len(token)))
        return self.project(hidden), state

    def forward(self, memory: Memory, inputs: Padded, state: State | None = None, attention: bool = False) -> Output:
        if state is not None:
            return Stepper.__call__(self, memory, inputs, state, attention)
        rows, width = inputs.values.shape[:2]
        pixels = self.drawing.canvas(self.drawing.embed(inputs.values[:, 1 : self.drawing.pixels]))
        hidden, kept = self.drawing(pixels, self.condition(memory, rows))
        return Output(hidden[:, :width], self.project, self.drawing.state_at(kept, inputs.lengths))

    @property
    def project(self) -> Callable[[Tensor], Tensor]:
        """(..., hidden) -> (..., V)"""
        return self.drawing.output

    def limit(self, memory: Memory) -> Tensor:
        """Every picture has as many pixels."""
        return torch.full((memory.rows,), self.drawing.pixels, device=memory.lengths.device)

    def suit(self, task: Task, encoder: Encoder | None) -> None:
        super().suit(task, encoder)
        if task.target.frames is not None:
            raise ValueError('writes pictures, not films: take decoder.type = "video_pixels"')
