"""The bridge from an encoder's final states to a decoder's initial states, or to its first input.

The summary as the first input, before BOS: Vinyals, Toshev, Bengio & Erhan 2015 ("Show and Tell"), eq. 10.
"""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from seqloom.types import Memory, State, flatten

Kind = Literal["dense", "copy", "hidden", "zero", "first"]


class Bridge(nn.Module):
    """How a decoder starts.

    dense: a layer computes all initial states from the summary; copy: all final states as they are, layer by layer;
    hidden: only the hidden states, s_0 = h_T, so that an LSTM starts with zero cell states; zero: zeros; first: from
    zeros it reads the summary, as its first input, before BOS.
    Costs are not copied: a decoder counts its own from 0.
    """

    def __init__(self, kind: Kind, *, memory_size: int, size: int, entries: int, input_size: int | None = None):
        """`input_size` is that of an embedded token, for decoders that can read the summary as one."""
        super().__init__()
        self.kind = kind if memory_size else "zero"
        self.size = size
        if self.kind in ("copy", "hidden") and memory_size != size:
            raise ValueError(f'bridge = "{kind}" needs size = {memory_size}, the size of the encoder, not {size}')
        if self.kind == "first" and input_size is None:
            raise ValueError('bridge = "first" needs a decoder that reads the summary like a token: take "recurrent"')
        if self.kind in ("dense", "first"):
            dense = nn.Linear(memory_size, input_size if self.kind == "first" and input_size else entries * size)
            self.weight, self.bias = dense.weight, dense.bias

    def forward(self, memory: Memory, own: State) -> State:
        """The initial states of a decoder's layers; `own` are those without an encoder, which give names and sizes."""
        if self.kind in ("zero", "first"):
            return own
        if self.kind in ("copy", "hidden"):
            given: State = memory.final.get("layers", {})
            if vector_sizes(given) != vector_sizes(own):
                raise ValueError(f'bridge = "{self.kind}" needs an encoder with the same cells and layers; try "dense"')
            if self.kind == "copy":
                return {layer: {**state, **without_costs(given[layer])} for layer, state in own.items()}
            return {layer: {**state, "hidden": given[layer]["hidden"]} for layer, state in own.items()}
        values: Tensor = torch.tanh(linear(memory.final["summary"], self.weight, self.bias))  # (B, entries * size)
        parts = iter(values.split(self.size, dim=-1))
        return {
            layer: {**state, **{name: next(parts) for name in without_costs(state)}} for layer, state in own.items()
        }

    def first_input(self, memory: Memory) -> Tensor | None:
        """What a decoder reads before BOS, if anything.  (B, input_size)"""
        return linear(memory.final["summary"], self.weight, self.bias) if self.kind == "first" else None


def count_vectors(layers: State) -> int:
    """How many initial state vectors a decoder has."""
    return sum(len(without_costs(state)) for state in layers.values())


def without_costs(state: State) -> State:
    """The entries of a layer's state that are vectors, (rows, size): all but costs, which are nested."""
    return {name: value for name, value in state.items() if not isinstance(value, dict)}


def vector_sizes(layers: State) -> dict[str, int]:
    """The size of each state vector, by name."""
    vectors = flatten({layer: without_costs(state) for layer, state in layers.items()})
    return {name: value.shape[-1] for name, value in vectors.items()}
