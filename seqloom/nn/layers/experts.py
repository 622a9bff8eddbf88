"""Mixture of experts: of many feed-forward networks, each position uses the few that a gate chooses for it.

Shazeer, Mirhoseini, Maziarz, Davis, Le, Hinton & Dean 2017. With E experts, of which k are active, the output is
    y = sum_i G(x)_i expert_i(x)             G(x) = softmax(the k largest of H(x), others -inf)           eq. 1, 3, 5
    H(x)_i = (x W_g)_i + noise * s(x)_i      s(x) = softplus(x W_n), noise ~ N(0, 1) in training only     eq. 4
and two costs keep the gate from always choosing the same experts: importance_i, the sum of G(x)_i (eq. 6), and load_i,
a smooth estimate of how many positions expert i takes, the sum of
    P(x, i) = Phi(((x W_g)_i - kth largest of the other H(x)) / s(x)_i)                                   eq. 8-10
The objective turns both into squared coefficients of variation (seqloom/objectives/cross_entropy.py). W_g and W_n start
at zero, so that chance shares positions out evenly in the beginning (appendix A).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from seqloom.nn.ops.dropout import Dropout
from seqloom.nn.ops.packing import Packing
from seqloom.types import State

LEAST_NOISE = 1e-3  # of s(x): below it the gradient of P(x, i) would not be finite


@dataclass(frozen=True)
class Routing:
    """Which experts N positions use."""

    chosen: Tensor  # (N, k): the experts of each position, those with the largest gates first
    gates: Tensor  # (N, k)
    importance: Tensor  # (N, E): the gates of all experts, zero for those that are not chosen
    load: Tensor | None  # (N, E): the chance that an expert is chosen; without noise whether it is; None: never noise

    def costs(self, packing: Packing) -> State:
        """Importance and load of each row's positions.  (rows, E) each"""
        spent = {"importance": self.importance} | ({} if self.load is None else {"load": self.load})
        return {name: packing.unpack(each).sum(1) for name, each in spent.items()}


class Experts(nn.Module):
    """Works on packed positions (N, size) as a feed-forward layer does. A position's output depends on it alone."""

    def __init__(
        self, *, size: int, experts: int, active_experts: int = 2, hidden: int, dropout: float = 0.0, noise: bool = True
    ):
        super().__init__()
        if not 2 <= active_experts <= experts:
            raise ValueError(
                f"active_experts = {active_experts} must be from 2 to experts = {experts}: "
                "a gate that chooses one expert learns nothing"
            )
        self.experts, self.active_experts = experts, active_experts
        self.gate = nn.Parameter(torch.zeros(experts, size))
        self.noise = nn.Parameter(torch.zeros(experts, size)) if noise else None
        if not noise:  # equal gates would give all positions to the same experts
            nn.init.normal_(self.gate, std=size**-0.5)
        bounds = size**-0.5, hidden**-0.5  # as of nn.Linear
        self.inner = nn.Parameter(torch.empty(experts, hidden, size).uniform_(-bounds[0], bounds[0]))
        self.inner_bias = nn.Parameter(torch.empty(experts, hidden).uniform_(-bounds[0], bounds[0]))
        self.outer = nn.Parameter(torch.empty(experts, size, hidden).uniform_(-bounds[1], bounds[1]))
        self.outer_bias = nn.Parameter(torch.empty(experts, size).uniform_(-bounds[1], bounds[1]))
        self.dropout = Dropout(dropout)

    def start(self, rows: int) -> State:
        """Costs before the first position."""
        zeros = self.gate.new_zeros(rows, self.experts)
        return {"importance": zeros} | ({} if self.noise is None else {"load": zeros})

    def forward(self, values: Tensor) -> tuple[Tensor, Routing]:
        """(N, size) -> (N, size)"""
        routing = self.route(values)
        return self.mix(values, routing), routing

    def route(self, values: Tensor) -> Routing:
        """Noisy top-k gating.  (N, size)"""
        count, scale = self.active_experts, None
        clean = noisy = in_full(functional.linear(values, self.gate))  # (N, E)
        if self.noise is not None and self.training:
            scale = functional.softplus(in_full(functional.linear(values, self.noise))).clamp_min(LEAST_NOISE)
            noisy = clean + torch.randn_like(clean) * scale
        top, order = noisy.topk(min(count + 1, self.experts), dim=-1)
        chosen, gates = order[:, :count], torch.softmax(top[:, :count], dim=-1)
        importance = torch.zeros_like(noisy).scatter(1, chosen, gates)
        load: Tensor | None = None
        if self.noise is not None:
            load = taken = torch.zeros_like(noisy).scatter_(1, chosen, 1.0)
            if scale is not None and count < self.experts:
                others = torch.where(taken > 0, top[:, count:], top[:, count - 1 : count])  # kth largest without i
                load = torch.special.ndtr((clean - others) / scale)
        return Routing(chosen, gates, importance, load)

    def mix(self, values: Tensor, routing: Routing) -> Tensor:
        """The experts' outputs, weighted by their gates; positions are sorted so that each expert has a slice.

        Products over slices of sorted positions take little more time than one dense layer of as many products: see
        `bench.experts`.
        """
        count = self.active_experts
        experts = routing.chosen.flatten()  # (N * k,)
        order = experts.argsort(stable=True)
        sizes = torch.bincount(experts, minlength=self.experts).tolist()
        outputs = []
        weights = (each.unbind() for each in (self.inner, self.inner_bias, self.outer, self.outer_bias))
        for part, inner, inner_bias, outer, outer_bias in zip(
            values.index_select(0, order // count).split(sizes), *weights
        ):
            if len(part):
                hidden = self.dropout.after_relu(functional.linear(part, inner, inner_bias))
                outputs.append(functional.linear(hidden, outer, outer_bias))
        if not outputs:
            return values
        places = torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=order.device))
        mixed = torch.cat(outputs).index_select(0, places).unflatten(0, (-1, count))  # (N, k, size)
        return (routing.gates.to(mixed.dtype)[:, None] @ mixed)[:, 0]


class ExpertsBetween(nn.Module):
    """A mixture of experts between two recurrent layers: x + dropout(sigmoid(y)), as published (appendix C)."""

    def __init__(self, *, size: int, experts: int, active_experts: int, hidden: int, dropout: float):
        super().__init__()
        self.mixture = Experts(size=size, experts=experts, active_experts=active_experts, hidden=hidden)
        self.dropout = Dropout(dropout)

    def start(self, rows: int) -> State:
        return {"cost": self.mixture.start(rows)}

    def forward(self, values: Tensor, packing: Packing, state: State) -> tuple[Tensor, State, Routing]:
        """(rows, T, size) -> (rows, T, size), zeros at padding; the state is the sum of the costs so far."""
        packed = packing.pack(values)
        mixed, routing = self.mixture(packed)
        spent = routing.costs(packing)
        after = {"cost": {name: before + spent[name] for name, before in state["cost"].items()}}
        return packing.unpack(self.dropout.add(packed, torch.sigmoid(mixed))), after, routing


def in_full(values: Tensor) -> Tensor:
    """The gate decides in fp32 at least."""
    return values.float() if values.dtype in (torch.bfloat16, torch.float16) else values


def expert_maps(routings: dict[str, Routing], packing: Packing) -> dict[str, Tensor]:
    """Which experts each position used in each layer, those with the largest gates first.  (rows, T, k) each"""
    return {layer: packing.unpack(routing.chosen) for layer, routing in routings.items()}
