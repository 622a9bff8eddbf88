"""The layers of a PixelCNN: plain masked convolutions, and gated ones in two stacks.

Plain (van den Oord, Kalchbrenner & Kavukcuoglu 2016, section 3.5): a residual block of ReLU, 1 x 1, masked k x k and
1 x 1 convolutions. What lies to the right in the lines above, beyond the width of one kernel per line, is never seen: a
blind spot.

Gated (van den Oord, Kalchbrenner, Vinyals, Espeholt, Graves & Kavukcuoglu 2016, figure 2): a vertical stack v sees all
lines above, a horizontal stack h the pixels to the left and v; there is no blind spot. With a condition c
    v' = gate(K_v * v + V c),  h' = h + W gate(K_h * h + U (K_v * v + V c)),  gate([a; b]) = tanh(a) sigmoid(b)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from seqloom.nn.layers.canvas import (
    CanvasNetwork,
    CanvasSettings,
    InLine,
    InPixel,
    at_column,
    at_line,
    channels_of,
    lines_above,
    write_column,
)
from seqloom.nn.ops.dropout import Dropout
from seqloom.types import State


def gate(values: Tensor) -> Tensor:
    """(B, 2 D, ...) -> (B, D, ...)"""
    signal, opening = values.chunk(2, dim=1)
    return torch.tanh(signal) * torch.sigmoid(opening)


def init_weight(weight: Tensor, variance: float) -> None:
    """Weights that multiply the variance of their inputs by this."""
    nn.init.normal_(weight, std=(variance / weight[0].numel()) ** 0.5)


class Above(nn.Module):
    """A convolution over `lines` lines above, and the `reach` columns on both sides."""

    def __init__(self, inputs: int, outputs: int, lines: int, reach: int):
        super().__init__()
        self.lines, self.reach = lines, reach
        self.convolution = nn.Conv2d(inputs, outputs, (lines, 2 * reach + 1))

    def forward(self, lines: Tensor) -> Tensor:
        """Whole lines, of which each result takes `lines`.  (B, D, H + lines - 1, W) -> (B, outputs, H, W)"""
        found: Tensor = self.convolution(functional.pad(lines, (self.reach, self.reach)))
        return found


class Layer(nn.Module):
    """What both kinds of layers share. The first one reads pixels, and must not see a pixel at its own place.

    State: {"lines": the last lines above that it has read (B, D, reach, W), "above": what they give in the present line
    (B, outputs, W), "line": what it has read in the present line (B, D, W), where that is not the pixels themselves}.
    """

    ahead = 0  # 1: the lines include the present one, which is whole when the line begins

    def __init__(
        self, *, inputs: int, outputs: int, lines: int, reach: int, first: bool, condition: int, dropout: float
    ):
        super().__init__()
        self.inputs, self.outputs, self.reach, self.first = inputs, outputs, reach, first
        self.above = Above(inputs, outputs, lines, reach)
        self.condition = nn.Conv2d(condition, outputs, 1, bias=False) if condition else None
        self.dropout = Dropout(dropout)

    def look_up(self, lines: Tensor, condition: Tensor | None) -> Tensor:
        """What lines above give.  (B, D, H + lines - 1, W) -> (B, outputs, H, W)"""
        found: Tensor = self.above(lines)
        return found if self.condition is None else found + self.condition(condition)

    def start(self, rows: int, width: int) -> State:
        """Before the first line."""
        make = self.above.convolution.weight.new_zeros
        return {
            "lines": make(rows, self.inputs, self.reach, width),
            "above": make(rows, self.outputs, width),
            "line": make(rows, self.inputs, width),
        }

    def state_at(self, kept: State, line: Tensor) -> State:
        return {
            "lines": lines_above(kept["lines"], line + self.ahead, self.reach),
            "above": at_line(kept["above"], line),
            "line": at_line(kept["line"], line),
        }


class PlainLayer(Layer):
    def __init__(self, *, size: int, channels: int, pixels: Tensor | None, reach: int, condition: int, dropout: float):
        of_size = channels_of(size, channels)
        half = channels_of(max(size // 2 // channels, 1) * channels, channels)
        read, written = (half, half) if pixels is None else (pixels, of_size)
        super().__init__(
            inputs=len(read),
            outputs=len(written),
            lines=reach,
            reach=reach,
            first=pixels is not None,
            condition=condition,
            dropout=dropout,
        )
        self.enter = None if self.first else InPixel(of_size, half)
        self.leave = None if self.first else InPixel(half, of_size)
        self.left = InLine(read, written, reach, strict=self.first)
        # A ReLU halves the variance; the sum of both convolutions is to have one of about 1.
        init_weight(self.above.convolution.weight, 0.5 if self.first else 1)
        init_weight(self.left.convolution.weight, 0.5 if self.first else 1)
        if self.enter is not None and self.leave is not None:
            init_weight(self.enter.linear.weight, 2)
            init_weight(self.leave.linear.weight, 2)

    def forward(self, values: Tensor, condition: Tensor | None) -> tuple[Tensor, State]:
        """(B, D, H, W) -> (B, size, H, W), and what is kept."""
        read = values if self.enter is None else self.enter(values.relu()).relu()
        above = self.look_up(functional.pad(read, (0, 0, self.reach, 0))[:, :, :-1], condition)
        return self.end(values, above + self.left(read)), {"lines": read, "above": above, "line": read}

    def end(self, values: Tensor, found: Tensor) -> Tensor:
        return found if self.leave is None else values + self.dropout(self.leave(found.relu()))

    def begin_line(self, state: State, above: Tensor, condition: Tensor | None) -> State:
        """`above` are the pixels of the line above."""
        finished = above if self.first else state["line"]
        lines = torch.cat([state["lines"], finished[:, :, None]], dim=2)[:, :, 1:]
        return {**state, "lines": lines, "above": self.look_up(lines, condition)[:, :, 0]}

    def pixel(self, values: Tensor, state: State, pixels: Tensor, column: Tensor) -> tuple[Tensor, State]:
        """One place of each row.  (B, D) -> (B, size)"""
        line = pixels
        if self.enter is not None:
            line = write_column(state["line"], column, self.enter(values.relu()).relu())
            state = {**state, "line": line}
        return self.end(values, at_column(state["above"], column) + self.left.pixel(line, column)), state


class GatedLayer(Layer):
    def __init__(self, *, size: int, channels: int, pixels: Tensor | None, reach: int, condition: int, dropout: float):
        of_size, gates = channels_of(size, channels), channels_of(size, channels, halves=2)
        read, first = (of_size, False) if pixels is None else (pixels, True)
        super().__init__(
            inputs=len(read),
            outputs=len(gates),
            lines=reach if first else reach + 1,
            reach=reach,
            first=first,
            condition=condition,
            dropout=dropout,
        )
        self.ahead = 0 if first else 1
        self.across = nn.Conv2d(len(gates), len(gates), 1)
        self.left, self.leave = InLine(read, gates, reach, strict=first), InPixel(of_size, of_size)
        # Gates are to see sums of variance about 1; what comes out of a gate has one of about a quarter.
        init_weight(self.above.convolution.weight, 1 if first else 4)
        init_weight(self.across.weight, 0.5)
        init_weight(self.left.convolution.weight, 0.5)
        init_weight(self.leave.linear.weight, 4)

    def forward(self, vertical: Tensor, values: Tensor, condition: Tensor | None) -> tuple[Tensor, Tensor, State]:
        """Both stacks.  (B, D, H, W) -> (B, size, H, W), and what is kept."""
        padded = functional.pad(vertical, (0, 0, self.reach, 0))
        seen = self.look_up(padded[:, :, :-1] if self.first else padded, condition)
        above = self.across(seen)
        kept = {"lines": vertical, "above": above, "line": values}
        return gate(seen), self.end(values, above + self.left(values)), kept

    def end(self, values: Tensor, found: Tensor) -> Tensor:
        change: Tensor = self.dropout(self.leave(gate(found)))
        return change if self.first else values + change

    def begin_line(self, state: State, above: Tensor, condition: Tensor | None) -> tuple[Tensor, State]:
        """`above` are the pixels of the line above, or the features of the vertical stack below in this line.

        (B, D, W) -> (B, size, W)
        """
        lines = torch.cat([state["lines"], above[:, :, None]], dim=2)
        seen = self.look_up(lines[:, :, 1:] if self.first else lines, condition)
        after = {**state, "lines": lines[:, :, 1:], "above": self.across(seen)[:, :, 0]}
        return gate(seen)[:, :, 0], after

    def pixel(self, values: Tensor, state: State, pixels: Tensor, column: Tensor) -> tuple[Tensor, State]:
        """One place of each row.  (B, D) -> (B, size)"""
        line = pixels
        if not self.first:
            line = write_column(state["line"], column, values)
            state = {**state, "line": line}
        return self.end(values, at_column(state["above"], column) + self.left.pixel(line, column)), state


class PixelCNN(CanvasNetwork):
    """State: {"0": that of the first layer, ...}."""

    def __init__(self, settings: CanvasSettings):
        super().__init__()
        settings.check()
        self.features, self.gated = settings.size, settings.style == "gated"
        made: type[GatedLayer] | type[PlainLayer] = GatedLayer if self.gated else PlainLayer
        self.layers = cast(
            "Sequence[GatedLayer | PlainLayer]",
            nn.ModuleList(
                made(
                    size=settings.size,
                    channels=settings.channels,
                    pixels=None if layer else channels_of(settings.inputs, settings.channels),
                    reach=(settings.kernel if layer else settings.first_kernel) // 2,
                    condition=settings.condition,
                    dropout=settings.dropout,
                )
                for layer in range(settings.layers)
            ),
        )

    def forward(self, pixels: Tensor, condition: Tensor | None) -> tuple[Tensor, State]:
        vertical = values = pixels
        kept: State = {}
        for number, layer in enumerate(self.layers):
            if isinstance(layer, GatedLayer):
                vertical, values, kept[str(number)] = layer(vertical, values, condition)
            else:
                values, kept[str(number)] = layer(values, condition)
        return values, kept

    def start(self, rows: int, width: int, condition: Tensor | None) -> State:
        state = {str(number): layer.start(rows, width) for number, layer in enumerate(self.layers)}
        return self.begin_line(state, state["0"]["line"], condition)  # nothing is above

    def state_at(self, kept: State, line: Tensor) -> State:
        return {str(number): layer.state_at(kept[str(number)], line) for number, layer in enumerate(self.layers)}

    def begin_line(self, state: State, above: Tensor, condition: Tensor | None) -> State:
        after: State = {}
        for number, layer in enumerate(self.layers):
            own = state[str(number)]
            if isinstance(layer, GatedLayer):
                above, after[str(number)] = layer.begin_line(own, above, condition)
            else:
                after[str(number)] = layer.begin_line(own, above, condition)
        return after

    def pixel(self, state: State, line: Tensor, column: Tensor) -> tuple[Tensor, State]:
        values = at_column(line, column)
        after: State = {}
        for number, layer in enumerate(self.layers):
            values, after[str(number)] = layer.pixel(values, state[str(number)], line, column)
        return values, after
