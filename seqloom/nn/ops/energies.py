"""v . tanh(q_i + k_j) for all pairs of query and key, without computing tanh for each pair.

tanh(q + k) = 1 - 2r with r = 1 / (1 + e^2q e^2k): exponentials are taken once per query and once per key, and a pair
costs a product and a reciprocal. Pairs are computed in slices that fit into the cache of a CPU, and again for backward:
    at q_i   4 v sum_j g_ij (r - r^2)        at k_j   4 v sum_i g_ij (r - r^2)        at v   sum_ij g_ij (1 - 2r)
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

PAIRS = 1 << 17  # components of pairs that are computed at a time
LARGEST = {torch.float32: 40.0, torch.float64: 340.0}  # beyond this, the square of an exponential overflows


def energies(query: Tensor, keys: Tensor, weight: Tensor) -> Tensor:
    """(B, Q, K), (B, T, K), (K,) -> (B, Q, T). A single query has no exponentials to share: plain tanh is faster."""
    if query.shape[1] == 1 or torch.compiler.is_exporting():
        return torch.tanh(query[:, :, None] + keys[:, None]) @ weight
    scores: Tensor = Energies.apply(query, keys, weight)
    return scores


class Energies(torch.autograd.Function):
    """Differentiable once: there are no second derivatives."""

    @staticmethod
    def forward(context: Any, query: Tensor, keys: Tensor, weight: Tensor) -> Tensor:
        context.save_for_backward(query, keys, weight)
        kind = torch.promote_types(query.dtype, torch.float32)
        scores = torch.empty(*query.shape[:2], keys.shape[1], dtype=kind, device=query.device)
        minus_two = -2 * weight.to(kind)
        for reciprocals, part in pairs(query, keys):
            torch.matmul(reciprocals, minus_two, out=scores[part])
        return scores.add_(weight.to(kind).sum()).to(query.dtype)

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        query, keys, weight = context.saved_tensors
        kind = torch.promote_types(query.dtype, torch.float32)
        gradient = gradient.to(kind)
        at_query, at_keys = torch.empty_like(query, dtype=kind), torch.empty_like(keys, dtype=kind)
        at_weight = gradient.sum().expand(len(weight)).clone()
        for reciprocals, part in pairs(query, keys):
            slice_gradient = gradient[part]
            at_weight.addmv_(reciprocals.view(-1, len(weight)).t(), slice_gradient.reshape(-1), alpha=-2)
            slopes = torch.addcmul(reciprocals, reciprocals, reciprocals, value=-1).mul_(slice_gradient[..., None])
            torch.sum(slopes, 2, out=at_query[part])
            torch.sum(slopes, 1, out=at_keys[part])
        four = 4 * weight.to(kind)
        return at_query.mul_(four).to(query.dtype), at_keys.mul_(four).to(keys.dtype), at_weight.to(weight.dtype)


def pairs(query: Tensor, keys: Tensor) -> Iterator[tuple[Tensor, slice]]:
    """r for all pairs of a few rows, (b, Q, T, K), and which rows these are."""
    kind = torch.promote_types(query.dtype, torch.float32)
    one, largest = torch.ones((), dtype=kind, device=query.device), LARGEST[kind]
    first, second = (values.to(kind).clamp(-largest, largest).mul_(2).exp_() for values in (query, keys))
    rows = max(PAIRS // max(query[:1].numel() * keys.shape[1], 1), 1)
    for begin in range(0, len(query), rows):
        part = slice(begin, begin + rows)
        yield torch.addcmul(one, first[part, :, None], second[part, None]).reciprocal_(), part
