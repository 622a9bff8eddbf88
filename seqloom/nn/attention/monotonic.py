"""Monotonic attention: scans the source from left to right, and each query stops at one state.

Raffel et al. 2017. At position j query i stops with probability p_ij = sigmoid(e_ij), or moves on to the next position:
    e(q, k)  = g v / |v| . tanh(W q + U k + b) + r                                        section 2.4
    alpha_ij = p_ij q_ij,  q_ij = (1 - p_i,j-1) q_i,j-1 + alpha_i-1,j,  alpha_0 = (1, 0, 0, ..)   section 2.3
alpha_ij is the probability that query i attends position j. Training uses the expected context, with noise in e that
drives p to 0 or 1 (section 2.5). Hard decoding stops at the first position with p > 1/2, starting from the position of
the query before. A query that passes the end attends nothing, and so do all after it.
"""

import sys
from typing import Literal

import torch
from torch import Tensor, nn

from seqloom.contracts import Attention
from seqloom.types import Memory, State


class Monotonic(Attention):
    """`decoding` applies outside training. `bias` is the initial value of r: the lower, the further a query moves.

    State: {"index": (rows,)}, the last position, counted from the source's beginning; soft: {"alignment": (rows, T)}.
    """

    monotonic = True
    uses_positions = True

    def __init__(
        self,
        *,
        query_size: int,
        memory_size: int,
        size: int = 256,
        noise: float = 1.0,
        bias: float = -1.0,
        decoding: Literal["hard", "soft"] = "hard",
    ):
        super().__init__()
        if noise < 0:
            raise ValueError(f"noise = {noise} must be 0 or more")
        self.output_size = memory_size
        self.noise, self.decoding = noise, decoding
        self.query = nn.Linear(query_size, size, bias=False)
        self.key = nn.Linear(memory_size, size)
        self.energy = nn.Linear(size, 1, bias=False)
        self.gain = nn.Parameter(torch.tensor([size**-0.5]))
        self.bias = nn.Parameter(torch.tensor([float(bias)]))

    @property
    def soft(self) -> bool:
        """Whether contexts are expectations over all positions."""
        return self.training or self.decoding == "soft"

    def prepare(self, memory: Memory) -> Memory:
        return memory.with_extra(keys=self.key(memory.states))  # (B, T, size)

    def start(self, memory: Memory) -> State:
        if not self.soft:
            return {"index": torch.zeros_like(memory.lengths)}
        alignment = memory.states.new_zeros(memory.rows, max(memory.states.shape[1], 1))
        alignment[:, 0] = 1
        return {"alignment": alignment}

    def forward(
        self, query: Tensor, memory: Memory, state: State, weights: bool = False, lengths: Tensor | None = None
    ) -> tuple[Tensor, State, Tensor | None]:
        rows, count, _ = query.shape
        width = memory.states.shape[1]
        energies = self.energies(query, memory)  # (rows, Q, T)
        if self.soft:
            if self.training and self.noise:
                energies = energies + self.noise * torch.randn_like(energies)
            before = torch.nn.functional.pad(state["alignment"], (0, max(width - state["alignment"].shape[1], 0)))
            alignments = expected_alignments(energies, before) if width else [before] * (count + 1)
            weight = torch.stack(alignments[1:], dim=1)[:, :, :width]  # (rows, Q, T)
            after = {"alignment": after_last_query(alignments, lengths)}
        else:
            indices = stop_positions(energies, state["index"], memory)
            positions = memory.offset + torch.arange(width, device=query.device)
            stopped = torch.stack(indices[1:], dim=1)[:, :, None] == positions  # (rows, Q, T)
            weight = (stopped & (energies > 0)).to(query.dtype)  # all 0 beyond the end
            after = {"index": after_last_query(indices, lengths)}
        folded = query.reshape(memory.rows, -1, query.shape[-1]).shape[1]  # n * Q, n rows per source
        context = (weight.reshape(memory.rows, folded, width) @ memory.states).view(rows, count, -1)
        return context, after, weight[:, None] if weights else None

    def energies(self, query: Tensor, memory: Memory) -> Tensor:
        """(rows, Q, D) -> (rows, Q, T), -inf at padding"""
        folded = self.query(query.reshape(memory.rows, -1, query.shape[-1]))  # (B, n * Q, size), n rows per source
        hidden = torch.tanh(folded[:, :, None] + memory.extra["keys"][:, None])  # (B, n * Q, T, size)
        direction = self.energy.weight[0] / self.energy.weight.norm()
        scores = hidden @ (self.gain * direction) + self.bias
        scores = scores.masked_fill(~memory.mask[:, None], float("-inf"))
        return scores.view(*query.shape[:2], memory.states.shape[1])

    def hold_back(self, scores: Tensor, state: State, memory: Memory) -> Tensor:
        """Mask rows that must wait for input: soft ones until the source is complete, hard ones at the end so far."""
        if memory.closed:
            return scores
        if self.soft:
            return torch.full_like(scores, float("-inf"))
        return scores.masked_fill((state["index"] >= source_ends(state["index"], memory))[:, None], float("-inf"))

    def states_read(self, state: State, memory: Memory) -> Tensor | None:
        return None if self.soft else torch.minimum(state["index"] + 1, source_ends(state["index"], memory))

    def first_needed(self, state: State) -> int:
        return 0 if self.soft else min(state["index"].tolist(), default=sys.maxsize)


def expected_alignments(energies: Tensor, alignment: Tensor) -> list[Tensor]:
    """alpha before the first query and after each.  (rows, Q, T), (rows, T) -> Q + 1 times (rows, T)

    q_j is a scan over positions by doubling: first what arrives from one position before, then from two, from four, and
    so on. That takes log T steps without division or subtraction, so it is stable.
    """
    stop, go_on = energies.sigmoid(), torch.sigmoid(-energies)
    reach, distance = go_on[:, :, :-1], 1  # the probability of moving this far from each position
    reaches = []
    while distance < energies.shape[2]:
        reaches.append((distance, reach.unbind(1)))
        reach = reach[:, :, distance:] * reach[:, :, :-distance]  # (rows, Q, T - 2 * distance)
        distance *= 2
    alignments = [alignment]
    for number, stopping in enumerate(stop.unbind(1)):
        arrived = alignments[-1]
        for distance, going in reaches:
            further = torch.addcmul(arrived[:, distance:], arrived[:, :-distance], going[number])
            arrived = torch.cat([arrived[:, :distance], further], dim=1)
        alignments.append(stopping * arrived)
    return alignments


def stop_positions(energies: Tensor, index: Tensor, memory: Memory) -> list[Tensor]:
    """`index`, and the position where each query stops: the end if it does not.  Q + 1 times (rows,)"""
    end = source_ends(index, memory)[:, None]  # (rows, 1)
    positions = memory.offset + torch.arange(energies.shape[2], device=index.device)
    indices = [index]
    for energy in energies.unbind(1):
        stops = (energy > 0) & (positions >= indices[-1][:, None])  # (rows, T)
        indices.append(torch.cat([torch.where(stops, positions, end), end], dim=1).amin(1))
    return indices


def source_ends(index: Tensor, memory: Memory) -> Tensor:
    """The position after the last one of each row's source, counted from its beginning.  (rows,) -> (rows,)"""
    rows = index.view(memory.rows, -1)  # (B, n), n rows per source
    return (torch.zeros_like(rows) + memory.lengths[:, None] + memory.offset).view(-1)


def after_last_query(states: list[Tensor], lengths: Tensor | None) -> Tensor:
    """The state of each row after its last real query, given the states after 0, 1, 2, .. queries."""
    if lengths is None:
        return states[-1]
    end = states[0]
    for count, state in enumerate(states[1:], start=1):
        end = torch.where((lengths >= count).view(-1, *[1] * (state.dim() - 1)), state, end)
    return end
