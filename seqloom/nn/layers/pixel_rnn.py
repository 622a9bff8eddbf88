"""The layers of a PixelRNN: LSTMs whose states lie side by side in a picture.

van den Oord, Kalchbrenner & Kavukcuoglu 2016. Row LSTM (section 3.2): a line reads its own pixels to the left, and by a
convolution the states of the line above: it sees a triangle. Diagonal BiLSTM (section 3.3): a state follows from those
to its left and above it, in another LSTM from those to its right and above; all states of a diagonal are computed at
once.
    [i f o g] = K_is * x + K_ss * h,  c' = sigmoid(f) c + sigmoid(i) tanh(g),  h' = sigmoid(o) tanh(c')
What comes from the right is shifted down by a line. There the pixels themselves are read as well: without them
the last pixel of the line above would never be seen.
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
    in_line,
    lines_above,
    window,
    write_column,
)
from seqloom.nn.layers.pixel_cnn import PlainLayer, init_weight
from seqloom.nn.ops.dropout import Dropout
from seqloom.nn.ops.maps import updated
from seqloom.types import State

FROM_STATES = 4.0  # states are small: what a layer of LSTMs adds is to have a variance near 1


def skew(values: Tensor) -> Tensor:
    """Each line shifted to the right of the one above.  (B, D, H, W) -> (B, D, H, H + W - 1)"""
    height, width = values.shape[2:]
    flat = functional.pad(values, (0, height)).flatten(2)[:, :, : height * (height + width - 1)]
    return flat.unflatten(2, (height, height + width - 1))


def unskew(values: Tensor, width: int) -> Tensor:
    """The same back.  (B, D, H, H + W - 1) -> (B, D, H, W)"""
    height = values.shape[2]
    return functional.pad(values.flatten(2), (0, height)).unflatten(2, (height, height + width))[:, :, :, :width]


def line_above(values: Tensor, line: Tensor) -> Tensor:
    """The line above one of each row, zeros above the first.  (B, D, H, W), (B,) -> (B, D, W)"""
    return lines_above(values, line, 1)[:, :, 0]


class RowLayer(nn.Module):
    """State: {"above": what the states above give to this line (B, 4 D, W), "before": their cells (B, D, W), "hidden"
    and "cell": those of this line so far, "line": its inputs (B, size, W)}.
    """

    def __init__(self, *, size: int, channels: int, pixels: int, reach: int, condition: int, dropout: float):
        super().__init__()
        self.size, self.inner = size, max(size // 2 // channels, 1) * channels
        of_size, of_inner = channels_of(size, channels), channels_of(self.inner, channels)
        self.left = InLine(of_size, channels_of(self.inner, channels, halves=4), reach, strict=False)
        self.above = nn.Conv1d(self.inner, 4 * self.inner, 2 * reach + 1, padding=reach)
        self.condition = nn.Conv2d(condition, 4 * self.inner, 1, bias=False) if condition else None
        self.leave, self.dropout = InPixel(of_inner, of_size), Dropout(dropout)
        init_weight(self.left.convolution.weight, 1)
        init_weight(self.leave.linear.weight, FROM_STATES)

    def look_up(self, hidden: Tensor, condition: Tensor | None) -> Tensor:
        """What the states of the line above give.  (B, D, W) -> (B, 4 D, W)"""
        found: Tensor = self.above(hidden)
        return found if self.condition is None else found + self.condition(condition)[:, :, 0]

    def forward(self, values: Tensor, pixels: Tensor, condition: Tensor | None) -> tuple[Tensor, State]:
        """(B, size, H, W), and what is kept."""
        read = self.left(values)
        hidden = cell = values.new_zeros(len(values), self.inner, values.shape[3])
        above, hiddens, cells = [], [], []
        for line in range(values.shape[2]):
            above.append(self.look_up(hidden, in_line(condition, line)))
            hidden, cell = updated(read[:, :, line] + above[-1], cell)
            hiddens.append(hidden)
            cells.append(cell)
        names = ("above", "hidden", "cell")
        kept = {name: torch.stack(each, dim=2) for name, each in zip(names, (above, hiddens, cells))}
        return values + self.dropout(self.leave(kept["hidden"])), {**kept, "line": values}

    def state_at(self, kept: State, line: Tensor) -> State:
        own = {name: at_line(kept[name], line) for name in ("above", "hidden", "cell", "line")}
        return {**own, "before": line_above(kept["cell"], line)}

    def start(self, rows: int, width: int, condition: Tensor | None) -> State:
        make = self.above.weight.new_zeros
        nothing = make(rows, self.inner, width)
        state = {"hidden": nothing, "cell": nothing, "line": make(rows, self.size, width)}
        return self.begin_line(state, nothing, condition)

    def begin_line(self, state: State, pixels: Tensor, condition: Tensor | None) -> State:
        return {**state, "above": self.look_up(state["hidden"], condition), "before": state["cell"]}

    def pixel(self, values: Tensor, state: State, column: Tensor) -> tuple[Tensor, State]:
        """One place of each row.  (B, size)"""
        line = write_column(state["line"], column, values)
        gates = self.left.pixel(line, column) + at_column(state["above"], column)
        hidden, cell = updated(gates, at_column(state["before"], column))
        after = {name: write_column(state[name], column, own) for name, own in (("hidden", hidden), ("cell", cell))}
        return values + self.dropout(self.leave(hidden)), {**state, **after, "line": line}


class Diagonal(nn.Module):
    """One LSTM over a picture: a state follows from that to its left and that above."""

    def __init__(self, size: int):
        super().__init__()
        self.size = size
        self.states = nn.Conv1d(size, 4 * size, 2)  # of the state above, and of that to the left

    def forward(self, read: Tensor) -> tuple[Tensor, Tensor]:
        """Hidden and cell states.  (B, 4 D, H, W) -> (B, D, H, W)"""
        rows, _, height, width = read.shape
        skewed = skew(read)
        hidden = cell = read.new_zeros(rows, self.size, height)
        hiddens, cells = [], []
        line = torch.arange(height, device=read.device)
        for diagonal in range(height + width - 1):
            gates = skewed[:, :, :, diagonal] + self.states(functional.pad(hidden, (1, 0)))
            hidden, cell = (each * (line <= diagonal) for each in updated(gates, cell))  # a line begins at its own one
            hiddens.append(hidden)
            cells.append(cell)
        return unskew(torch.stack(hiddens, dim=3), width), unskew(torch.stack(cells, dim=3), width)

    def step(self, read: Tensor, above: Tensor, left: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        """One place.  (B, 4 D), (B, D) each"""
        return updated(read + self.states(torch.stack([above, left], dim=2))[:, :, 0], cell)


class DiagonalLayer(nn.Module):
    """State: {"right": the states of the line above that came from the right (B, D, W), "above": those that came from
    the left, "hidden" and "cell": those of this line so far, "line": its inputs (B, size, W), "given" and
    "given_right": what the condition gives to this line (B, 4 D, W)}.
    """

    def __init__(self, *, size: int, channels: int, pixels: int, reach: int, condition: int, dropout: float):
        super().__init__()
        self.size, self.inner = size, max(size // 2 // channels, 1) * channels
        of_size, of_inner = channels_of(size, channels), channels_of(self.inner, channels)
        self.enter = InPixel(of_size, channels_of(self.inner, channels, halves=4))
        self.enter_right = nn.Conv2d(size + pixels, 4 * self.inner, 1)
        self.condition = nn.Conv2d(condition, 8 * self.inner, 1, bias=False) if condition else None
        self.left, self.right = Diagonal(self.inner), Diagonal(self.inner)
        self.leave, self.leave_right = InPixel(of_inner, of_size), nn.Conv2d(self.inner, size, 1, bias=False)
        self.dropout = Dropout(dropout)
        init_weight(self.enter.linear.weight, 1)
        init_weight(self.enter_right.weight, 1)
        for layer in (self.leave.linear, self.leave_right):
            init_weight(layer.weight, FROM_STATES)

    def conditions(self, condition: Tensor | None, rows: int, height: int, width: int) -> tuple[Tensor, Tensor]:
        """What the condition gives to both directions.  (B, 4 D, height, width)"""
        if self.condition is None:
            nothing = self.leave_right.weight.new_zeros(1, 1, 1, 1).expand(rows, 4 * self.inner, height, width)
            return nothing, nothing
        left, right = self.condition(condition).expand(-1, -1, height, width).chunk(2, dim=1)
        return left, right

    def forward(self, values: Tensor, pixels: Tensor, condition: Tensor | None) -> tuple[Tensor, State]:
        """(B, size, H, W), and what is kept."""
        rows, _, height, width = values.shape
        left, right = self.conditions(condition, rows, height, width)
        hidden, cell = self.left(self.enter(values) + left)
        read = self.enter_right(torch.cat([values, pixels], dim=1)) + right
        other = self.right(read.flip(3))[0].flip(3)
        shifted = functional.pad(other, (0, 0, 1, 0))[:, :, :-1]
        found = values + self.dropout(self.leave(hidden) + self.leave_right(shifted))
        kept = {"right": other, "hidden": hidden, "cell": cell, "line": values, "given": left, "given_right": right}
        return found, kept

    def state_at(self, kept: State, line: Tensor) -> State:
        own = {name: at_line(kept[name], line) for name in ("hidden", "cell", "line", "given", "given_right")}
        return {**own, "right": line_above(kept["right"], line), "above": line_above(kept["hidden"], line)}

    def start(self, rows: int, width: int, condition: Tensor | None) -> State:
        make = self.leave_right.weight.new_zeros
        states = {name: make(rows, self.inner, width) for name in ("right", "above", "hidden", "cell")}
        left, right = (each[:, :, 0] for each in self.conditions(condition, rows, 1, width))
        return {**states, "line": make(rows, self.size, width), "given": left, "given_right": right}

    def begin_line(self, state: State, pixels: Tensor, condition: Tensor | None) -> State:
        finished = self.enter_right(torch.cat([state["line"], pixels], dim=1)[:, :, None])[:, :, 0]
        read = finished + state["given_right"]  # (B, 4 D, W)
        hidden = cell = torch.zeros_like(state["cell"][:, :, 0])
        found = []
        for column in reversed(range(read.shape[2])):
            hidden, cell = self.right.step(read[:, :, column], state["right"][:, :, column], hidden, cell)
            found.append(hidden)
        left, right = (each[:, :, 0] for each in self.conditions(condition, len(read), 1, read.shape[2]))
        after = {"right": torch.stack(found[::-1], dim=2), "above": state["hidden"]}
        return {**state, **after, "given": left, "given_right": right}

    def pixel(self, values: Tensor, state: State, column: Tensor) -> tuple[Tensor, State]:
        """One place of each row.  (B, size)"""
        above, left = at_column(state["above"], column), window(state["hidden"], column, 1)[:, :, 0]
        before = window(state["cell"], column, 1)[:, :, 0]
        hidden, cell = self.left.step(self.enter(values) + at_column(state["given"], column), above, left, before)
        right = self.leave_right(at_column(state["right"], column)[:, :, None, None])[:, :, 0, 0]
        found = values + self.dropout(self.leave(hidden) + right)
        after = {name: write_column(state[name], column, own) for name, own in (("hidden", hidden), ("cell", cell))}
        return found, {**state, **after, "line": write_column(state["line"], column, values)}


class PixelRNN(CanvasNetwork):
    """A masked convolution over the pixels, then LSTMs. State: {"0": of the convolution, "1", ...: of each layer}."""

    def __init__(self, settings: CanvasSettings):
        super().__init__()
        settings.check()
        self.features = settings.size
        common = {"size": settings.size, "channels": settings.channels, "condition": settings.condition}
        self.first = PlainLayer(
            **common,
            pixels=channels_of(settings.inputs, settings.channels),
            reach=settings.first_kernel // 2,
            dropout=settings.dropout,
        )
        made: type[RowLayer] | type[DiagonalLayer] = RowLayer if settings.style == "row" else DiagonalLayer
        common |= {"pixels": settings.inputs, "reach": settings.kernel // 2}
        self.layers = cast(
            "Sequence[RowLayer | DiagonalLayer]",
            nn.ModuleList(made(**common, dropout=settings.dropout) for _ in range(settings.layers)),
        )

    def forward(self, pixels: Tensor, condition: Tensor | None) -> tuple[Tensor, State]:
        values, first = self.first(pixels, condition)
        kept: State = {"0": first}
        for number, layer in enumerate(self.layers, start=1):
            values, kept[str(number)] = layer(values, pixels, condition)
        return values, kept

    def start(self, rows: int, width: int, condition: Tensor | None) -> State:
        first = self.first.start(rows, width)
        state: State = {"0": self.first.begin_line(first, first["line"], condition)}
        return state | {
            str(number): layer.start(rows, width, condition) for number, layer in enumerate(self.layers, start=1)
        }

    def state_at(self, kept: State, line: Tensor) -> State:
        every = (self.first, *self.layers)
        return {str(number): layer.state_at(kept[str(number)], line) for number, layer in enumerate(every)}

    def begin_line(self, state: State, above: Tensor, condition: Tensor | None) -> State:
        every = (self.first, *self.layers)
        return {
            str(number): layer.begin_line(state[str(number)], above, condition) for number, layer in enumerate(every)
        }

    def pixel(self, state: State, line: Tensor, column: Tensor) -> tuple[Tensor, State]:
        values, first = self.first.pixel(at_column(line, column), state["0"], line, column)
        after: State = {"0": first}
        for number, layer in enumerate(self.layers, start=1):
            values, after[str(number)] = layer.pixel(values, state[str(number)], column)
        return values, after
