"""PixelCNN and PixelRNN: the pixels of a picture one by one, line by line, each from those before it.

van den Oord, Kalchbrenner & Kavukcuoglu 2016: masked convolutions ("plain"), LSTMs over lines ("row") or along
diagonals ("diagonal"); van den Oord, Kalchbrenner, Vinyals, Espeholt, Graves & Kavukcuoglu 2016: gated convolutions in
two stacks ("gated"). The distribution of a pixel is a softmax over its levels; a pixel of several channels is as many
tokens. With an encoder the summary of the source conditions every layer.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Literal

import torch
from torch import Tensor, nn

from seqloom.arrays import maybe_any
from seqloom.contracts import Decoder, Encoder, Stepper, Task
from seqloom.nn.layers.canvas import CanvasNetwork, InPixel, channels_of
from seqloom.nn.layers.embedding import embed
from seqloom.nn.layers.levels import Levels
from seqloom.nn.layers.pixel_cnn import PixelCNN
from seqloom.nn.layers.pixel_rnn import PixelRNN
from seqloom.types import Memory, Output, Padded, State, hold

NETWORKS: dict[str, type[PixelCNN] | type[PixelRNN]] = {
    "gated": PixelCNN,
    "plain": PixelCNN,
    "row": PixelRNN,
    "diagonal": PixelRNN,
}


class Pixels(Decoder):
    """`layers` layers of `size`, the first convolution with a kernel of its own; `hidden` is what the softmax sees.

    State: {"count": how many tokens were read (rows,), "line": the embedded pixels of the present line (rows, D, W),
    "network": that of the network}.
    """

    def __init__(
        self,
        *,
        vocabulary: int,
        canvas: tuple[int, int, int] | None,
        memory_size: int,
        bos: int,
        eos: int | None,
        style: Literal["gated", "plain", "row", "diagonal"] = "gated",
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
        self.height, self.columns, self.channels = canvas
        self.pixels, self.embedding_size, self.hidden_size = prod(canvas), embedding_size, hidden
        self.embedding = nn.Embedding(vocabulary, embedding_size)
        self.network: CanvasNetwork = NETWORKS[style](
            inputs=self.channels * embedding_size,
            channels=self.channels,
            style=style,
            size=size,
            layers=layers,
            kernel=kernel,
            first_kernel=first_kernel,
            condition=memory_size,
            dropout=dropout,
        )
        features = channels_of(self.network.features, self.channels)
        self.last = InPixel(features, channels_of(hidden, self.channels))
        self.output = Levels(hidden, vocabulary)

    def prepare(self, memory: Memory) -> Memory:
        return memory

    def condition(self, memory: Memory, rows: int) -> Tensor | None:
        """The summary of each row's source."""
        summary = memory.final.get("summary")
        return None if summary is None else summary.index_select(0, memory.owner(rows))

    def start(self, memory: Memory) -> State:
        device = self.embedding.weight.device
        line = self.embedding.weight.new_zeros(memory.rows, self.channels * self.embedding_size, self.columns)
        count = torch.zeros(memory.rows, dtype=torch.long, device=device)
        network = self.network.start(memory.rows, self.columns, self.condition(memory, memory.rows))
        return {"count": count, "line": line, "network": network}

    def step(self, token: Tensor, state: State, memory: Memory) -> tuple[Tensor, State]:
        count, line, network = state["count"], state["line"], state["network"]
        column, channel = self.place(count - 1)
        line = self.write(line, column, channel, embed(self.embedding, token), count > 0)
        column, channel = self.place(count)
        begins = (column == 0) & (channel == 0) & (count > 0)
        if maybe_any(begins):
            begun = self.network.begin_line(network, line, self.condition(memory, len(token)))
            network, line = hold(~begins, begun, network), line.masked_fill(begins[:, None, None], 0)
        features, network = self.network.pixel(network, line, column)
        hidden = self.of_channel(self.last(features.relu()).relu(), channel)
        return self.project(hidden), {"count": count + 1, "line": line, "network": network}

    def forward(self, memory: Memory, inputs: Padded, state: State | None = None, attention: bool = False) -> Output:
        if state is not None:
            return Stepper.__call__(self, memory, inputs, state, attention)
        rows, width = inputs.values.shape[:2]
        embedded = embed(self.embedding, inputs.values[:, 1 : self.pixels])  # (rows, U - 1, E)
        blank = embedded.new_zeros(rows, self.pixels - embedded.shape[1], self.embedding_size)
        whole = torch.cat([embedded, blank], dim=1).view(rows, self.height, self.columns, -1)
        pixels = whole.permute(0, 3, 1, 2)  # (rows, channels * E, H, W)
        features, kept = self.network(pixels, self.condition(memory, rows))
        maps = self.last(features.relu()).relu().permute(0, 2, 3, 1)  # (rows, H, W, hidden)
        channels = torch.arange(self.channels, device=maps.device)
        each = self.of_channel(maps[:, :, :, None].expand(-1, -1, -1, self.channels, -1), channels)
        hidden = each.flatten(1, 3)[:, :width]  # (rows, U, hidden)
        line = (inputs.lengths - 1).clamp(0, self.pixels - 1) // (self.columns * self.channels)
        after = {
            "count": inputs.lengths,
            "line": pixels[torch.arange(rows, device=line.device), :, line],
            "network": self.network.state_at(kept, line),
        }
        return Output(hidden, self.project, after)

    def place(self, number: Tensor) -> tuple[Tensor, Tensor]:
        """The column and the channel of a token of each row; those beyond the picture are at its end."""
        inside = number.clamp(0, self.pixels - 1)
        return inside // self.channels % self.columns, inside % self.channels

    def write(self, line: Tensor, column: Tensor, channel: Tensor, embedded: Tensor, real: Tensor) -> Tensor:
        """The line with one more token in each real row.  (rows, D, W)"""
        split = line.view(len(line), self.channels, self.embedding_size, self.columns).clone()
        rows = torch.arange(len(line), device=line.device)
        split[rows, channel, :, column] = torch.where(real[:, None], embedded, split[rows, channel, :, column])
        return split.flatten(1, 2)

    def of_channel(self, hidden: Tensor, channel: Tensor) -> Tensor:
        """The features of one channel, zeros in place of the others.  (..., hidden), (...)"""
        if self.channels == 1:
            return hidden
        own = channels_of(self.hidden_size, self.channels).to(hidden.device)
        return hidden * (own == channel[..., None])

    @property
    def project(self) -> Callable[[Tensor], Tensor]:
        """(..., hidden) -> (..., V)"""
        return self.output

    def limit(self, memory: Memory) -> Tensor:
        """Every picture has as many pixels."""
        return torch.full((memory.rows,), self.pixels, device=self.embedding.weight.device)

    def suit(self, task: Task, encoder: Encoder | None) -> None:
        if task.eos is not None or task.target.canvas is None:
            raise ValueError('writes the pixels of pictures: set task.type = "series" and task.target.type = "pixels"')
        super().suit(task, encoder)
