"""Linear maps, fast for a few rows on a CPU.

Small products are memory-bound, and a map that widens reads a transposed weight much faster: so the weights of a model
that is frozen for inference (`Model.freeze`) have their transposes cached. Weights that may still be trained have none.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

FEW = 16  # rows
weight_cache: dict[tuple[Any, ...], Tensor] = {}  # copies of frozen weights, for as long as the weights live


class Linear(nn.Linear):
    """nn.Linear through `linear`."""

    def forward(self, values: Tensor) -> Tensor:
        return linear(values, self.weight, self.bias)


def linear(values: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """values . weight^T + bias.  (..., I) -> (..., O)"""
    if not transposing_pays(values, weight):
        return functional.linear(values, weight, bias)
    return multiply(values, cached_weight((weight,), transpose=True), bias)


def plus_linear(total: Tensor, values: Tensor, weight: Tensor) -> Tensor:
    """total + values . weight^T.  (rows, O), (rows, I) -> (rows, O)"""
    matrix = cached_weight((weight,), transpose=True) if transposing_pays(values, weight) else weight.t()
    return torch.addmm(total, values, matrix)


def is_frozen(weight: Tensor) -> bool:
    """Whether a weight is fixed for good. Exported graphs hold the weights themselves, not copies."""
    return not weight.requires_grad and not torch.is_grad_enabled() and not torch.compiler.is_exporting()


def transposing_pays(values: Tensor, weight: Tensor) -> bool:
    outputs, inputs = weight.shape
    few = values.numel() <= FEW * inputs
    return few and outputs > inputs and weight.device.type == "cpu" and is_frozen(weight)


def linear_of_several(values: Tensor, maps: Sequence[nn.Linear]) -> Tensor:
    """Several linear maps of the same values in one product, outputs concatenated.  (..., I) -> (..., sum of O)"""
    weights, biases = tuple(each.weight for each in maps), tuple(each.bias for each in maps)
    if weights[0].device.type != "cpu" or not is_frozen(weights[0]):
        return functional.linear(values, torch.cat(weights), torch.cat(biases))
    if values.numel() > FEW * values.shape[-1]:
        return functional.linear(values, cached_weight(weights), cached_weight(biases))
    return multiply(values, cached_weight(weights, transpose=True), cached_weight(biases))


def multiply(values: Tensor, matrix: Tensor, bias: Tensor | None) -> Tensor:
    """values . matrix + bias.  (..., I), (I, O) -> (..., O)"""
    flat = values.reshape(-1, values.shape[-1])
    product = flat @ matrix if bias is None else torch.addmm(bias, flat, matrix)
    return product.view(*values.shape[:-1], matrix.shape[1])


def cached_weight(weights: tuple[Tensor, ...], transpose: bool = False) -> Tensor:
    """Frozen weights concatenated, and transposed on request: copied once, then cached."""
    key = (*map(identity, weights), transpose)
    if key not in weight_cache:
        joined = torch.cat(weights) if len(weights) > 1 else weights[0]
        weight_cache[key] = (joined.t() if transpose else joined).detach().contiguous()
        weakref.finalize(weights[0], weight_cache.pop, key, None)
    return weight_cache[key]


def normed_weight(direction: Tensor, gain: Tensor) -> Tensor:
    """gain * direction / |direction|, row by row; of frozen weights computed once.  (O, I), (O, 1) -> (O, I)"""

    def compute() -> Tensor:
        return direction * (gain / direction.norm(dim=1, keepdim=True))

    if not is_frozen(direction):
        return compute()
    key = ("normed", identity(direction), identity(gain))
    if key not in weight_cache:
        weight_cache[key] = compute()
        weakref.finalize(direction, weight_cache.pop, key, None)
    return weight_cache[key]


def identity(weight: Tensor) -> tuple[int, int, int]:
    """A key that changes when a weight is loaded, moved or written to."""
    return id(weight), weight.data_ptr(), 0 if weight.is_inference() else weight._version


def clear_weight_cache() -> None:
    """Call before frozen weights change."""
    weight_cache.clear()


@dataclass(frozen=True)
class Projection:
    """The last layer of a decoder, hidden vectors to logits: a matrix of its own, or the embedding's (tied)."""

    weight: Tensor  # (V, D)
    bias: Tensor | None = None  # (V,)

    def __call__(self, hidden: Tensor) -> Tensor:
        """(..., D) -> (..., V)"""
        return linear(hidden, self.weight, self.bias)


def projection(output: nn.Module | None, embedding: nn.Embedding) -> Projection | nn.Module:
    """The output layer of a decoder, or its embedding if tied; a layer that is not nn.Linear is returned as it is."""
    if output is None:
        return Projection(embedding.weight)
    return Projection(output.weight, output.bias) if type(output) is nn.Linear else output
