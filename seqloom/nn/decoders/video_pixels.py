"""Video Pixel Network: the pixels of a film one by one, each from the frames before it and from its own frame so far.

Kalchbrenner, van den Oord, Simonyan, Danihelka, Vinyals, Graves & Kavukcuoglu 2017: a network reads whole frames at
their full height and width, a convolutional LSTM carries what it finds from frame to frame, and a PixelCNN writes the
next one, told at each place what the LSTM knows there. Theirs is made of masked multiplicative blocks, this one of the
layers of the decoder `pixels`. Earlier models are settings: style = "independent" is their baseline, whose pixels do
not see each other within a frame; with layers = 0 it is a convolutional LSTM (Shi et al. 2015), with memory = "vector"
an LSTM over frames (Srivastava et al. 2015).
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Literal

import torch
from torch import Tensor, nn

from seqloom.arrays import maybe_any
from seqloom.contracts import Decoder, Stepper
from seqloom.nn.layers.canvas import check_odd
from seqloom.nn.layers.drawing import MOST, Drawing, Style
from seqloom.nn.layers.film_memory import ConvolutionalLSTM, FilmMemory, VectorLSTM
from seqloom.nn.layers.frame_network import FrameNetwork
from seqloom.types import Memory, Output, Padded, State, hold, over_tensors
from seqloom.values import expect

MEMORIES: dict[str, type[ConvolutionalLSTM] | type[VectorLSTM]] = {
    "convolutional": ConvolutionalLSTM,
    "vector": VectorLSTM,
}


class VideoPixels(Decoder):
    """`layers` blocks read a frame, `drawing_layers` write one; all maps have `size` features.

    State: {"count": how many tokens were read (rows,), "frame": the embedded tokens of the present frame (rows, P, E),
    "memory": what is kept of the frames before, "maps": what that tells of each place (rows, size, H, W), "drawing":
    that of the Drawing}.
    """

    endless = True

    def __init__(
        self,
        *,
        vocabulary: int,
        canvas: tuple[int, int, int] | None,
        frames: int | None,
        memory_size: int,
        bos: int,
        eos: int | None,
        style: Style = "gated",
        memory: Literal["convolutional", "vector"] = "convolutional",
        size: int = 32,
        layers: int = 4,
        drawing_layers: int = 4,
        kernel: int = 3,
        first_kernel: int = 5,
        width: int = 256,
        embedding_size: int = 8,
        hidden: int = 64,
        dropout: float = 0.0,
    ):
        if canvas is None or frames is None:
            raise ValueError('writes the pixels of films: set task.target.type = "frames"')
        expect(0, MOST, layers=layers)
        expect(1, MOST, drawing_layers=drawing_layers, width=width)
        check_odd(kernel=(kernel, 1))
        super().__init__(bos=bos, eos=eos, lengths=(0.0, frames * prod(canvas)))
        self.height, self.columns, channels = canvas
        self.pixels, self.frames, self.hidden_size = prod(canvas), frames, hidden
        self.drawing = Drawing(
            vocabulary=vocabulary,
            canvas=canvas,
            style=style,
            size=size,
            layers=drawing_layers,
            kernel=kernel,
            first_kernel=first_kernel,
            embedding_size=embedding_size,
            hidden=hidden,
            condition=size,
            dropout=dropout,
        )
        inputs = channels * embedding_size
        self.reads = FrameNetwork(inputs, size=size, layers=layers, kernel=kernel, dropout=dropout)
        places = self.height * self.columns
        self.memory: FilmMemory = MEMORIES[memory](size, size=size, kernel=kernel, places=places, width=width)
        self.source = nn.Linear(memory_size, size, bias=False) if memory_size else None

    def prepare(self, memory: Memory) -> Memory:
        return memory

    def maps(self, state: State, memory: Memory, rows: int) -> Tensor:
        """What is known of each place of the next frame.  (rows, size, H, W)"""
        found = self.memory.maps(state, self.height, self.columns)
        if self.source is None:
            return found
        given = self.source(memory.final["summary"]).index_select(0, memory.owner(rows))
        return found + given[:, :, None, None]

    def start(self, memory: Memory) -> State:
        rows, make = memory.rows, self.drawing.embedding.weight.new_zeros
        kept = self.memory.start(rows, self.height, self.columns)
        maps = self.maps(kept, memory, rows)
        return {
            "count": torch.zeros(rows, dtype=torch.long, device=memory.lengths.device),
            "frame": make(rows, self.pixels, self.drawing.embedding_size),
            "memory": kept,
            "maps": maps,
            "drawing": self.drawing.start(rows, maps),
        }

    def step(self, token: Tensor, state: State, memory: Memory) -> tuple[Tensor, State]:
        rows, count, embedded = len(token), state["count"], self.drawing.embed(token)
        place = ((count - 1) % self.pixels)[:, None, None].expand(-1, 1, embedded.shape[1])
        frame = torch.where(
            (count > 0)[:, None, None], state["frame"].scatter(1, place, embedded[:, None]), state["frame"]
        )
        film = {name: state[name] for name in ("memory", "maps", "drawing")}
        begins = (count > 0) & (count % self.pixels == 0) & (count < self.frames * self.pixels)
        if maybe_any(begins):
            kept = self.memory.step(self.reads(self.drawing.canvas(frame)), film["memory"])
            maps = self.maps(kept, memory, rows)
            film = hold(~begins, {"memory": kept, "maps": maps, "drawing": self.drawing.start(rows, maps)}, film)
        hidden, drawing = self.drawing.step(embedded, film["drawing"], film["maps"])
        return self.project(hidden), {**film, "count": count + 1, "frame": frame, "drawing": drawing}

    def forward(self, memory: Memory, inputs: Padded, state: State | None = None, attention: bool = False) -> Output:
        if state is not None:
            return Stepper.__call__(self, memory, inputs, state, attention)
        rows, width = inputs.values.shape[:2]
        embedded = self.drawing.embed(inputs.values[:, 1 : self.frames * self.pixels])
        count = max(-(-width // self.pixels), 1)
        blank = embedded.new_zeros(rows, count * self.pixels - embedded.shape[1], embedded.shape[2])
        frames = torch.cat([embedded, blank], dim=1).unflatten(1, (count, self.pixels))  # (rows, T, P, E)
        pixels = self.drawing.canvas(frames.flatten(0, 1))
        read = self.reads(pixels).unflatten(0, (rows, count))
        states = [self.memory.start(rows, self.height, self.columns)]
        for number in range(count - 1):
            states.append(self.memory.step(read[:, number], states[-1]))
        maps = torch.stack([self.maps(each, memory, rows) for each in states], dim=1)  # (rows, T, size, H, W)
        hidden, kept = self.drawing(pixels, maps.flatten(0, 1))
        # The state is that of the frame which each row is in.
        present = (inputs.lengths - 1).clamp(0, count * self.pixels - 1) // self.pixels
        chosen = torch.arange(rows, device=present.device), present
        after = {
            "count": inputs.lengths,
            "frame": frames[chosen],
            "memory": over_tensors(lambda *every: torch.stack(every, dim=1)[chosen], *states),
            "maps": maps[chosen],
            "drawing": self.drawing.state_at(
                over_tensors(lambda value: value.unflatten(0, (rows, count))[chosen], kept),
                inputs.lengths - present * self.pixels,
            ),
        }
        return Output(hidden.unflatten(0, (rows, count)).flatten(1, 2)[:, :width], self.project, after)

    @property
    def project(self) -> Callable[[Tensor], Tensor]:
        """(..., hidden) -> (..., V)"""
        return self.drawing.output

    def limit(self, memory: Memory) -> Tensor:
        """Every film has as many pixels."""
        return torch.full((memory.rows,), self.frames * self.pixels, device=memory.lengths.device)
