"""Linear maps, and what a processor needs to make them quickly for a few rows.

A product of few rows is as fast as memory gives the weight, and it gives one that lies input by input much faster to a
map that widens. Outside training such a weight is kept turned.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

FEW = 16  # rows
copies: dict[tuple[int, ...], tuple[list[tuple[int, int]] | None, Tensor | None]] = {}  # of living weights


class Linear(nn.Linear):
    """nn.Linear by `linear`."""

    def forward(self, values: Tensor) -> Tensor:
        return linear(values, self.weight, self.bias)


def linear(values: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """values . weight^T + bias.  (..., I) -> (..., O)"""
    if not is_turned(values, weight):
        return functional.linear(values, weight, bias)
    return few(values, kept((weight,), turned=True), bias)


def plus_linear(sum_so_far: Tensor, values: Tensor, weight: Tensor) -> Tensor:
    """sum_so_far + values . weight^T.  (rows, O), (rows, I) -> (rows, O)"""
    matrix = kept((weight,), turned=True) if is_turned(values, weight) else weight.t()
    return torch.addmm(sum_so_far, values, matrix)


def is_turned(values: Tensor, weight: Tensor) -> bool:
    """Whether a turned copy of the weight pays."""
    if torch.is_grad_enabled() or torch.compiler.is_exporting():
        return False
    outputs, inputs = weight.shape
    return outputs > inputs and values.numel() <= FEW * inputs and weight.device.type == "cpu"


def linear_of_several(values: Tensor, maps: Sequence[nn.Linear]) -> Tensor:
    """The outputs of several maps of the same values, side by side, in one product.  (..., I) -> (..., all O)"""
    weights, biases = tuple(each.weight for each in maps), tuple(each.bias for each in maps)
    if torch.is_grad_enabled() or weights[0].device.type != "cpu":
        return functional.linear(values, torch.cat(weights), torch.cat(biases))
    if values.numel() > FEW * values.shape[-1]:
        return functional.linear(values, kept(weights), kept(biases))
    return few(values, kept(weights, turned=True), kept(biases))


def few(values: Tensor, turned: Tensor, bias: Tensor | None) -> Tensor:
    """values . turned + bias.  (..., I), (I, O) -> (..., O)"""
    flat = values.reshape(-1, values.shape[-1])
    product = flat @ turned if bias is None else torch.addmm(bias, flat, turned)
    return product.view(*values.shape[:-1], turned.shape[1])


def kept(weights: tuple[Tensor, ...], turned: bool = False) -> Tensor:
    """Several weights as one, turned or not: a copy that is made once, and anew when one of them has changed."""
    key = (*map(id, weights), turned)
    versions = [(weight.data_ptr(), 0 if weight.is_inference() else weight._version) for weight in weights]
    found, copy = copies.get(key, (None, None))
    if found != versions:
        joined = torch.cat(weights) if len(weights) > 1 else weights[0]
        copy = (joined.t() if turned else joined).detach().contiguous()
        if found is None:
            weakref.finalize(weights[0], copies.pop, key, None)
        copies[key] = versions, copy
    assert copy is not None
    return copy


def forget_copies() -> None:
    """Training is about to change weights, and some optimisers do so without a trace."""
    copies.clear()


@dataclass(frozen=True)
class Projection:
    """The last layer of a decoder: logits of what it has thought, by a matrix of its own or that of its embedding."""

    weight: Tensor  # (V, D)
    bias: Tensor | None = None  # (V,)

    def __call__(self, hidden: Tensor) -> Tensor:
        """(..., D) -> (..., V)"""
        return linear(hidden, self.weight, self.bias)


def projection(output: nn.Module | None, embedding: nn.Embedding) -> Projection | nn.Module:
    """By the output layer of a decoder, or by its embedding; a layer that is more than a matrix stays what it is."""
    if output is None:
        return Projection(embedding.weight)
    return Projection(output.weight, output.bias) if type(output) is nn.Linear else output
