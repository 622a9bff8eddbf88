"""Additive attention: score(q, k) = v . tanh(W q + U k).

Bahdanau, Cho & Bengio 2015, eq. 6; the same function as the lectures' "linear" form v . tanh(W [k; q]). With `coverage`
the score of a position depends on the attention it has had so far (Tu et al. 2016; See, Liu & Manning 2017, eq. 10-12):
    c_t = a_1 + .. + a_{t-1}        score = v . tanh(W q + U k + w c)        cost of a query = sum_j min(a_tj, c_tj)
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from seqloom.nn.attention.monotonic import after_last_query
from seqloom.nn.attention.scores import ScoredAttention
from seqloom.nn.ops.energies import energies
from seqloom.types import Memory, State


class Additive(ScoredAttention):
    """A network with one hidden layer scores each pair of query and key.

    State with coverage: {"coverage": (rows, T), "cost": {"coverage": (rows,)}}; queries are then computed one by one.
    """

    def __init__(self, *, query_size: int, memory_size: int, size: int = 256, coverage: bool = False):
        super().__init__(query_size=query_size, memory_size=memory_size)
        self.query = nn.Linear(query_size, size, bias=False)
        self.key = nn.Linear(memory_size, size)
        self.energy = nn.Linear(size, 1, bias=False)
        self.covered = nn.Linear(1, size, bias=False) if coverage else None

    def keys(self, states: Tensor) -> Tensor:
        return self.key(states)  # (B, T, size)

    def score(self, query: Tensor, keys: Tensor) -> Tensor:
        return energies(self.query(query), keys, self.energy.weight[0])  # (B, Q, T)

    def start(self, memory: Memory) -> State:
        if self.covered is None:
            return {}
        zeros = memory.states.new_zeros(memory.rows, memory.states.shape[1])
        return {"coverage": zeros, "cost": {"coverage": zeros.new_zeros(memory.rows)}}

    def forward(
        self, query: Tensor, memory: Memory, state: State, weights: bool = False, lengths: Tensor | None = None
    ) -> tuple[Tensor, State, Tensor | None]:
        if self.covered is None:
            return super().forward(query, memory, state, weights, lengths)
        rows, count, _ = query.shape
        width, keys = memory.states.shape[1], memory.extra["keys"][:, None]  # (B, 1, T, size)
        queries = self.query(query).view(memory.rows, -1, count, 1, keys.shape[-1])  # (B, n, Q, 1, size), n = rows / B
        bias = self.mask_scores(query.new_zeros(memory.rows, rows // memory.rows * count, width), memory)
        bias = bias.view(memory.rows, -1, count, width)  # 0, or -inf where a query may not attend
        before = functional.pad(state["coverage"], (0, width - state["coverage"].shape[1]))
        coverages, costs, steps = [before], [state["cost"]["coverage"]], []
        for number in range(count):
            coverage = coverages[-1].view(memory.rows, -1, width)  # (B, n, T)
            hidden = torch.tanh(queries[:, :, number] + keys + self.covered(coverage[..., None]))  # (B, n, T, size)
            weight = torch.softmax(self.energy(hidden).squeeze(-1) + bias[:, :, number], dim=-1)
            costs.append(costs[-1] + torch.minimum(weight, coverage).sum(-1).view(rows))
            coverages.append(coverages[-1] + weight.view(rows, width))
            steps.append(weight)
        weight = torch.stack(steps, dim=2)  # (B, n, Q, T)
        context = (weight.flatten(1, 2) @ memory.states).view(rows, count, -1)
        after = {
            "coverage": after_last_query(coverages, lengths),
            "cost": {"coverage": after_last_query(costs, lengths)},
        }
        return context, after, weight.view(rows, 1, count, width) if weights else None
