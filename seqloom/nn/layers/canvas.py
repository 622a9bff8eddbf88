"""Networks over pictures that see only the pixels before each place, line by line and from left to right.

Each works on all places at once, or pixel by pixel with what it keeps of the lines before. In a pixel of several
channels a channel sees those before it: features come in groups, one per channel (van den Oord, Kalchbrenner &
Kavukcuoglu 2016, section 3.4).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from seqloom.types import State


@dataclass(frozen=True)
class CanvasSettings:
    """What a network over pictures is made of; some need only a part of it."""

    inputs: int  # D, the embedded channels of a pixel
    channels: int
    style: str
    size: int  # features of a pixel
    layers: int
    kernel: int
    first_kernel: int
    condition: int  # M, 0 for none
    dropout: float

    def check(self) -> None:
        """At least one layer, and odd kernels."""
        check_odd(kernel=(self.kernel, 3 if self.style == "plain" else 1), first_kernel=(self.first_kernel, 3))
        if self.layers < 1:
            raise ValueError(f"layers = {self.layers} must be 1 or more")
        if self.size < 2 * self.channels:
            raise ValueError(f"size = {self.size}: expected {2 * self.channels} or more")


class CanvasNetwork(nn.Module, ABC):
    """From pixels (B, D, H, W) to the features of each place (B, F, H, W), which depend on pixels before it alone.

    A condition tells something of each place, (B, M, H, W), or the same of all places, (B, M, 1, 1).
    """

    features: int

    @abstractmethod
    def forward(self, pixels: Tensor, condition: Tensor | None) -> tuple[Tensor, State]:
        """The features of all places, and what `state_at` needs: tensors (B, ..., H, W)."""

    @abstractmethod
    def start(self, rows: int, width: int, condition: Tensor | None) -> State:
        """The state at the beginning of the first line."""

    @abstractmethod
    def state_at(self, kept: State, line: Tensor) -> State:
        """The state in a line of each row.  (B,)"""

    @abstractmethod
    def begin_line(self, state: State, above: Tensor, condition: Tensor | None) -> State:
        """The state at the beginning of a line, whose condition is given; the line above is whole.  (B, D, W)"""

    @abstractmethod
    def pixel(self, state: State, line: Tensor, column: Tensor) -> tuple[Tensor, State]:
        """The features of one place of each row: the pixels of its line (B, D, W), and its column (B,).  (B, F)"""


def in_line(condition: Tensor | None, line: Tensor | int) -> Tensor | None:
    """The condition in one line, or in one of each row (B,).  (B, M, H or 1, W or 1) -> (B, M, 1, W or 1)"""
    if condition is None or condition.shape[2] == 1:
        return condition
    return condition[:, :, line : line + 1] if isinstance(line, int) else at_line(condition, line)[:, :, None]


def check_odd(**kernels: tuple[int, int]) -> None:
    """Kernels are odd and not below their least width."""
    for name, (value, least) in kernels.items():
        if value < least or value % 2 == 0:
            raise ValueError(f"{name} = {value}: expected an odd number, {least} or more")


def group_mask(outputs: Tensor, inputs: Tensor, strict: bool) -> Tensor:
    """Which inputs of the same pixel an output may see: those of channels before its own, and unless strict of its own.

    (outputs,), (inputs,) -> (outputs, inputs)
    """
    return inputs < outputs[:, None] if strict else inputs <= outputs[:, None]


def channels_of(size: int, channels: int, halves: int = 1) -> Tensor:
    """The channel that each feature belongs to; of a layer with gates for both halves.  (halves * size,)"""
    return (torch.arange(size) * channels // size).repeat(halves)


class InPixel(nn.Module):
    """A linear layer within each pixel."""

    mask: Tensor

    def __init__(self, inputs: Tensor, outputs: Tensor):
        super().__init__()
        self.linear = nn.Linear(len(inputs), len(outputs))
        self.register_buffer("mask", group_mask(outputs, inputs, strict=False).float(), persistent=False)

    def forward(self, values: Tensor) -> Tensor:
        """(B, inputs, H, W), or of one pixel (B, inputs)"""
        weight = self.linear.weight * self.mask
        if values.ndim == 2:
            return functional.linear(values, weight, self.linear.bias)
        return functional.conv2d(values, weight[:, :, None, None], self.linear.bias)


class InLine(nn.Module):
    """A convolution over a pixel and the `reach` pixels to its left; a strict one does not see its own channel."""

    mask: Tensor

    def __init__(self, inputs: Tensor, outputs: Tensor, reach: int, strict: bool):
        super().__init__()
        self.reach = reach
        self.convolution = nn.Conv1d(len(inputs), len(outputs), reach + 1, bias=False)
        mask = torch.ones(len(outputs), len(inputs), reach + 1)
        mask[:, :, -1] = group_mask(outputs, inputs, strict).float()
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, values: Tensor) -> Tensor:
        """(B, inputs, H, W) -> (B, outputs, H, W)"""
        weight = self.convolution.weight * self.mask
        return functional.conv2d(functional.pad(values, (self.reach, 0)), weight[:, :, None])

    def pixel(self, line: Tensor, column: Tensor) -> Tensor:
        """One place of a line.  (B, inputs, W), (B,) -> (B, outputs)"""
        weight = self.convolution.weight * self.mask
        return functional.linear(window(line, column, self.reach).flatten(1), weight.flatten(1))


def window(line: Tensor, column: Tensor, reach: int) -> Tensor:
    """A pixel and those to its left, zeros before the line.  (B, D, W), (B,) -> (B, D, reach + 1)"""
    padded = functional.pad(line, (reach, 0))
    places = column[:, None] + torch.arange(reach + 1, device=column.device)  # (B, reach + 1)
    return padded.gather(2, places[:, None].expand(-1, line.shape[1], -1))


def at_column(line: Tensor, column: Tensor) -> Tensor:
    """(B, D, W), (B,) -> (B, D)"""
    return line.gather(2, column[:, None, None].expand(-1, line.shape[1], 1))[:, :, 0]


def write_column(line: Tensor, column: Tensor, values: Tensor) -> Tensor:
    """A line with other values in one column.  (B, D, W), (B,), (B, D) -> (B, D, W)"""
    return line.scatter(2, column[:, None, None].expand(-1, line.shape[1], 1), values[:, :, None])


def lines_above(values: Tensor, line: Tensor, count: int) -> Tensor:
    """So many lines above a line of each row, zeros above the first.  (B, D, H, W), (B,) -> (B, D, count, W)"""
    places = line[:, None] + torch.arange(-count, 0, device=line.device)  # (B, count)
    rows = torch.arange(len(values), device=line.device)[:, None]
    found = values.transpose(1, 2)[rows, places.clamp(min=0)] * (places >= 0)[:, :, None, None]
    return found.transpose(1, 2)


def at_line(values: Tensor, line: Tensor) -> Tensor:
    """(B, D, H, W), (B,) -> (B, D, W)"""
    return values[torch.arange(len(values), device=line.device), :, line]
