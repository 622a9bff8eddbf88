"""Monotonic attention: goes through the source once, and stops at the one state it wants.

Raffel et al. 2017. At place j query i stops with probability p_ij = sigmoid(e_ij), and else goes on to the next place:
    e(q, k)  = g v / |v| . tanh(W q + U k + b) + r                                        section 2.4
    alpha_ij = p_ij q_ij,  q_ij = (1 - p_i,j-1) q_i,j-1 + alpha_i-1,j,  alpha_0 = (1, 0, 0, ..)   section 2.3
alpha_ij is the probability that query i looks at place j. Training takes the expected context, with noise in e that
drives p to 0 or 1 (section 2.5); then a query stops at the first place with p > 1/2 from the last one on, itself
included. A query that passes the end looks at nothing, and so do all after it.
"""

import sys
from typing import Literal

import torch
from torch import Tensor, nn

from seqloom.contracts import Attention
from seqloom.types import Memory, State


class Monotonic(Attention):
    """`decoding` is what is done outside training. `bias` is where r begins: the lower, the further a query goes.

    State: {"index": (rows,)}, the last place counted from the source's beginning; soft {"alignment": (rows, T)}, alpha.
    """

    monotonic = True

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
        """Whether contexts are expectations over all places."""
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
            found = expected_alignments(energies, before) if width else [before] * (count + 1)
            weight = torch.stack(found[1:], dim=1)[:, :, :width]  # (rows, Q, T)
            after = {"alignment": after_last_query(found, lengths)}
        else:
            indices = stop_positions(energies, state["index"], memory)
            places = memory.offset + torch.arange(width, device=query.device)
            looked = torch.stack(indices[1:], dim=1)[:, :, None] == places  # (rows, Q, T)
            weight = (looked & (energies > 0)).to(query.dtype)  # beyond the end there is nothing
            after = {"index": after_last_query(indices, lengths)}
        together = query.reshape(memory.rows, -1, query.shape[-1]).shape[1]  # n * Q: n rows a source
        context = (weight.reshape(memory.rows, together, width) @ memory.states).view(rows, count, -1)
        return context, after, weight[:, None] if weights else None

    def energies(self, query: Tensor, memory: Memory) -> Tensor:
        """(rows, Q, D) -> (rows, Q, T), -inf at padding"""
        folded = self.query(query.reshape(memory.rows, -1, query.shape[-1]))  # (B, n * Q, size): n rows a source
        hidden = torch.tanh(folded[:, :, None] + memory.extra["keys"][:, None])  # (B, n * Q, T, size)
        direction = self.energy.weight[0] / self.energy.weight.norm()
        scores = hidden @ (self.gain * direction) + self.bias
        scores = scores.masked_fill(~memory.mask[:, None], float("-inf"))
        return scores.view(*query.shape[:2], memory.states.shape[1])

    def hold_back(self, scores: Tensor, state: State, memory: Memory) -> Tensor:
        """An expectation needs the whole source; a search for one place needs as much as it passes."""
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

    q_j adds to alpha_j what comes from the place before, then what comes from two places before, from four, and so on:
    few steps, in which nothing is divided or subtracted.
    """
    stop, go_on = energies.sigmoid(), torch.sigmoid(-energies)
    reach, distance = go_on[:, :, :-1], 1  # the probability of going so far from each place
    reaches = []
    while distance < energies.shape[2]:
        reaches.append((distance, reach.unbind(1)))
        reach = reach[:, :, distance:] * reach[:, :, :-distance]  # (rows, Q, T - 2 * distance)
        distance *= 2
    found = [alignment]
    for number, stopping in enumerate(stop.unbind(1)):
        arrived = found[-1]
        for distance, going in reaches:
            further = torch.addcmul(arrived[:, distance:], arrived[:, :-distance], going[number])
            arrived = torch.cat([arrived[:, :distance], further], dim=1)
        found.append(stopping * arrived)
    return found


def stop_positions(energies: Tensor, index: Tensor, memory: Memory) -> list[Tensor]:
    """Where each query stops, the state before first: the end where it finds nothing.  Q + 1 times (rows,)"""
    end = source_ends(index, memory)[:, None]  # (rows, 1)
    places = memory.offset + torch.arange(energies.shape[2], device=index.device)
    found = [index]
    for energy in energies.unbind(1):
        wanted = (energy > 0) & (places >= found[-1][:, None])  # (rows, T)
        found.append(torch.cat([torch.where(wanted, places, end), end], dim=1).amin(1))
    return found


def source_ends(index: Tensor, memory: Memory) -> Tensor:
    """The place after the last one of each row's source, counted from its beginning.  (rows,) -> (rows,)"""
    rows = index.view(memory.rows, -1)  # (B, n): n rows a source
    return (torch.zeros_like(rows) + memory.lengths[:, None] + memory.offset).view(-1)


def after_last_query(states: list[Tensor], lengths: Tensor | None) -> Tensor:
    """The state after each row's last real query, of those after 0, 1, 2, .. queries."""
    if lengths is None:
        return states[-1]
    end = states[0]
    for count, state in enumerate(states[1:], start=1):
        end = torch.where((lengths >= count).view(-1, *[1] * (state.dim() - 1)), state, end)
    return end
