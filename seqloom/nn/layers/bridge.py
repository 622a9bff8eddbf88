"""The bridge from an encoder's last states to a decoder's first."""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from seqloom.types import Memory, State, flatten

Kind = Literal["dense", "copy", "hidden", "zero"]


class Bridge(nn.Module):
    """How a decoder starts.

    dense: a layer makes all states of the summary; copy: all states as they are, layer by layer; hidden: of these what
    the encoder puts out alone, s_0 = h_T, so that an LSTM begins with empty cells; zero: nothing is handed over.
    Costs are no part of that: a decoder counts its own, from 0.
    """

    def __init__(self, kind: Kind, *, memory_size: int, size: int, entries: int):
        super().__init__()
        self.kind = kind if memory_size else "zero"
        self.size = size
        if self.kind in ("copy", "hidden") and memory_size != size:
            raise ValueError(f'bridge = "{kind}" needs size = {memory_size}, the size of the encoder')
        if self.kind == "dense":
            dense = nn.Linear(memory_size, entries * size)
            self.weight, self.bias = dense.weight, dense.bias

    def forward(self, memory: Memory, own: State) -> State:
        """The states of a decoder's layers; `own` are those it would start with alone."""
        if self.kind == "zero":
            return own
        if self.kind in ("copy", "hidden"):
            given: State = memory.final.get("layers", {})
            if vector_sizes(given) != vector_sizes(own):
                raise ValueError(f'bridge = "{self.kind}" needs an encoder with the same cells and layers')
            if self.kind == "copy":
                return {layer: {**state, **without_costs(given[layer])} for layer, state in own.items()}
            return {layer: {**state, "hidden": given[layer]["hidden"]} for layer, state in own.items()}
        values: Tensor = torch.tanh(linear(memory.final["summary"], self.weight, self.bias))  # (B, entries * size)
        parts = iter(values.split(self.size, dim=-1))
        return {
            layer: {**state, **{name: next(parts) for name in without_costs(state)}} for layer, state in own.items()
        }


def count_vectors(layers: State) -> int:
    """How many vectors a decoder begins with."""
    return sum(len(without_costs(state)) for state in layers.values())


def without_costs(state: State) -> State:
    """The entries of a cell's state that are vectors, (rows, size): all but its costs."""
    return {name: value for name, value in state.items() if name != "cost"}


def vector_sizes(layers: State) -> dict[str, int]:
    """What states are made of: their vectors, and how wide these are."""
    return {
        name: value.shape[-1] for name, value in flatten({key: without_costs(layers[key]) for key in layers}).items()
    }
