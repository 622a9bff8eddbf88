"""Attention to each input of a source by itself; the contexts are concatenated.

Chung, Senior, Vinyals & Zisserman 2017, section 3.2 ("Watch, Listen, Attend and Spell"):
    c_t = [attention_1(q_t, h_video); attention_2(q_t, h_sound)]
An input that is missing has a context of zeros. Weights are those of the source itself, such as lips.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import cast

import torch
from torch import Tensor, nn

from seqloom.contracts import Attention
from seqloom.nn.attention.additive import Additive
from seqloom.types import Memory, State

OWN = "source"  # the name of the source itself among its inputs


class Several(Attention):
    """`attention` once for the source itself and once for each of its `parts`. State: that of each, by name."""

    def __init__(
        self,
        *,
        query_size: int,
        memory_size: int,
        attention: Callable[..., Attention] = Additive,
        parts: tuple[str, ...] = ("sound",),
    ):
        super().__init__()
        if not parts or OWN in parts or len(set(parts)) < len(parts):
            raise ValueError(f"parts = {list(parts)}: expected the names of different parts of a source")
        names = (OWN, *parts)
        made = [attention(query_size=query_size, memory_size=memory_size) for _ in names]
        if made[0].monotonic:
            raise ValueError("a monotonic attention waits for one input, and here are several: take another one")
        self.attentions = cast(Mapping[str, Attention], nn.ModuleDict(dict(zip(names, made))))
        self.uses_positions = made[0].uses_positions  # type: ignore[misc]  # of the one that it is made of
        self.output_size = sum(each.output_size for each in made)

    def prepare(self, memory: Memory) -> Memory:
        prepared = {name: each.prepare(input_of(memory, name)) for name, each in self.attentions.items()}
        return replace(prepared.pop(OWN), parts={**memory.parts, **prepared})

    def start(self, memory: Memory) -> State:
        return {name: each.start(input_of(memory, name)) for name, each in self.attentions.items()}

    def forward(
        self, query: Tensor, memory: Memory, state: State, weights: bool = False, lengths: Tensor | None = None
    ) -> tuple[Tensor, State, Tensor | None]:
        contexts: list[Tensor] = []
        after: State = {}
        shown: Tensor | None = None
        for name, each in self.attentions.items():
            own = input_of(memory, name)
            readable = replace(own, lengths=own.lengths.clamp(min=1))  # no softmax over nothing
            asked = weights and name == OWN
            context, after[name], weight = each(query, readable, state[name], asked, lengths)
            missing = (own.lengths == 0)[own.owner(len(query))]  # (rows,)
            contexts.append(context.masked_fill(missing[:, None, None], 0))
            if asked and weight is not None:
                shown = weight.masked_fill(missing[:, None, None, None], 0)
        return torch.cat(contexts, dim=-1), after, shown


def input_of(memory: Memory, name: str) -> Memory:
    """One input of a memory."""
    if name == OWN:
        return memory
    if name not in memory.parts:
        raise ValueError(f'attends to "{name}", which the encoder does not read: take encoder.type = "several"')
    return memory.parts[name]
