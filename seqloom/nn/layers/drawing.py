"""The pixels of one picture, each from those before it: what decoders of pictures and of films share."""

from __future__ import annotations

from math import prod
from typing import Literal

import torch
from torch import Tensor, nn

from seqloom.arrays import maybe_any
from seqloom.nn.layers.canvas import CanvasNetwork, CanvasSettings, InPixel, channels_of, in_line
from seqloom.nn.layers.embedding import embed
from seqloom.nn.layers.independent import Independent
from seqloom.nn.layers.levels import Levels
from seqloom.nn.layers.pixel_cnn import PixelCNN
from seqloom.nn.layers.pixel_rnn import PixelRNN
from seqloom.types import State, hold
from seqloom.values import expect

Style = Literal["gated", "plain", "row", "diagonal", "independent"]
MOST = 65_536  # features
NETWORKS: dict[str, type[PixelCNN] | type[PixelRNN] | type[Independent]] = {
    "gated": PixelCNN,
    "plain": PixelCNN,
    "row": PixelRNN,
    "diagonal": PixelRNN,
    "independent": Independent,
}


class Drawing(nn.Module):
    """`layers` layers of `size`, the first convolution with a kernel of its own; `hidden` is what the softmax sees.

    A pixel of several channels is as many tokens. A condition is that of a CanvasNetwork.
    State: {"count": how many tokens were read (rows,), "line": the embedded pixels of the present line (rows, D, W),
    "network": that of the network}.
    """

    owner: Tensor  # which channel each hidden feature belongs to

    def __init__(
        self,
        *,
        vocabulary: int,
        canvas: tuple[int, int, int],
        style: Style,
        size: int,
        layers: int,
        kernel: int,
        first_kernel: int,
        embedding_size: int,
        hidden: int,
        condition: int,
        dropout: float,
    ):
        super().__init__()
        expect(1, MOST, embedding_size=embedding_size, hidden=hidden)
        self.height, self.columns, self.channels = canvas
        self.pixels, self.embedding_size = prod(canvas), embedding_size
        self.embedding = nn.Embedding(vocabulary, embedding_size)
        settings = CanvasSettings(
            inputs=self.channels * embedding_size,
            channels=self.channels,
            style=style,
            size=size,
            layers=layers,
            kernel=kernel,
            first_kernel=first_kernel,
            condition=condition,
            dropout=dropout,
        )
        self.network: CanvasNetwork = NETWORKS[style](settings)
        features = channels_of(self.network.features, self.channels)
        self.register_buffer("owner", channels_of(hidden, self.channels), persistent=False)
        self.last = InPixel(features, self.owner)
        self.output = Levels(hidden, vocabulary)

    def start(self, rows: int, condition: Tensor | None) -> State:
        device = self.embedding.weight.device
        line = self.embedding.weight.new_zeros(rows, self.channels * self.embedding_size, self.columns)
        network = self.network.start(rows, self.columns, in_line(condition, 0))
        return {"count": torch.zeros(rows, dtype=torch.long, device=device), "line": line, "network": network}

    def step(self, embedded: Tensor, state: State, condition: Tensor | None) -> tuple[Tensor, State]:
        """One more token, embedded; at the beginning any, it is not read.  (rows, E) -> (rows, hidden)"""
        count, line, network = state["count"], state["line"], state["network"]
        column, channel = self.place(count - 1)
        line = self.write(line, column, channel, embedded, count > 0)
        column, channel = self.place(count)
        begins = (column == 0) & (channel == 0) & (count > 0)
        if maybe_any(begins):
            begun = self.network.begin_line(network, line, in_line(condition, self.line(count)))
            network, line = hold(~begins, begun, network), line.masked_fill(begins[:, None, None], 0)
        features, network = self.network.pixel(network, line, column)
        hidden = self.of_channel(self.last(features.relu()).relu(), channel)
        return hidden, {"count": count + 1, "line": line, "network": network}

    def canvas(self, embedded: Tensor) -> Tensor:
        """Pixels side by side, blank where some are missing.  (rows, P, E) -> (rows, channels * E, H, W)"""
        rows, count = embedded.shape[:2]
        blank = embedded.new_zeros(rows, self.pixels - count, self.embedding_size)
        whole = torch.cat([embedded, blank], dim=1).view(rows, self.height, self.columns, -1)
        return whole.permute(0, 3, 1, 2)

    def forward(self, pixels: Tensor, condition: Tensor | None) -> tuple[Tensor, State]:
        """Whole pictures at once, and what `state_at` needs.  (rows, channels * E, H, W) -> (rows, P, hidden)"""
        features, kept = self.network(pixels, condition)
        maps = self.last(features.relu()).relu().permute(0, 2, 3, 1)  # (rows, H, W, hidden)
        channels = torch.arange(self.channels, device=maps.device)
        each = self.of_channel(maps[:, :, :, None].expand(-1, -1, -1, self.channels, -1), channels)
        return each.flatten(1, 3), {"pixels": pixels, "network": kept}

    def state_at(self, kept: State, count: Tensor) -> State:
        """The state after so many inputs of each row."""
        line = self.line(count - 1)
        rows = torch.arange(len(line), device=line.device)
        network = self.network.state_at(kept["network"], line)
        return {"count": count, "line": kept["pixels"][rows, :, line], "network": network}

    def place(self, number: Tensor) -> tuple[Tensor, Tensor]:
        """The column and the channel of a token of each row; those beyond the picture are at its end."""
        inside = number.clamp(0, self.pixels - 1)
        return inside // self.channels % self.columns, inside % self.channels

    def line(self, number: Tensor) -> Tensor:
        """The line of a token of each row."""
        return number.clamp(0, self.pixels - 1) // (self.columns * self.channels)

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
        return hidden * (self.owner == channel[..., None])

    def embed(self, tokens: Tensor) -> Tensor:
        """(...) -> (..., E), or of mixtures of tokens (..., V)."""
        return embed(self.embedding, tokens)
