"""Transformer decoder; on an empty memory a causal language model (GPT).

Vaswani et al. 2017, section 3.1; Radford et al. 2018 for the decoder alone. With `experts` the feed-forward networks of
all layers are mixtures of that many, of which a position uses `active_experts` (seqloom/nn/layers/experts.py).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, cast

import torch
from torch import Tensor, nn

from seqloom.nn.decoders.vocabulary import VocabularyDecoder
from seqloom.nn.layers.embedding import AddPositions, embed, embedding
from seqloom.nn.layers.experts import Experts, Routing, expert_maps
from seqloom.nn.layers.kv_cache import KVCache
from seqloom.nn.layers.transformer import Norm, TransformerLayer
from seqloom.nn.ops.packing import Packing
from seqloom.types import COST, Memory, Output, Padded, State, over_tensors


class Transformer(VocabularyDecoder):
    """State: {"cache": the KV cache, "length": (rows,) how many tokens it holds, "cost": that of experts by layer}."""

    grows = True

    def __init__(
        self,
        *,
        vocabulary: int,
        memory_size: int,
        bos: int,
        eos: int | None,
        size: int = 256,
        layers: int = 3,
        heads: int = 4,
        hidden: int = 1024,
        dropout: float = 0.1,
        norm: Norm = "pre",
        positions: Literal["sinusoidal", "learned"] = "sinusoidal",
        longest: int = 512,
        tied: bool = True,
        experts: int = 0,
        active_experts: int = 2,
        length_ratio: float = 2.0,
        length_offset: int = 10,
    ):
        super().__init__(bos=bos, eos=eos, lengths=(length_ratio, length_offset))
        self.longest = longest if positions == "learned" else None
        self.hidden_size = size
        self.embedding = embedding(vocabulary, size)
        self.positioned = AddPositions(size=size, positions=positions, longest=longest, dropout=dropout)
        self.layers = cast(
            Sequence[TransformerLayer],
            nn.ModuleList(
                TransformerLayer(
                    size=size,
                    heads=heads,
                    hidden=hidden,
                    memory_size=memory_size,
                    dropout=dropout,
                    norm=norm,
                    experts=experts,
                    active_experts=active_experts,
                )
                for _ in range(layers)
            ),
        )
        self.norm = nn.LayerNorm(size) if norm == "pre" else nn.Identity()
        self.output = None if tied else nn.Linear(size, vocabulary)
        self.attends = memory_size > 0

    def prepare(self, memory: Memory) -> Memory:
        if not self.attends:
            return memory
        packing = Packing(memory.mask)
        states = packing.pack(memory.states)  # once, for all layers
        return memory.with_extra(
            **{str(number): layer.cross_attention.entries(states, packing) for number, layer in enumerate(self.layers)}
        )

    def start(self, memory: Memory) -> State:
        device = self.embedding.weight.device
        state: State = {
            "cache": KVCache.empty(memory.rows, device),
            "length": torch.zeros(memory.rows, dtype=torch.long, device=device),
        }
        mixtures = {f"layers.{number}": layer.feed_forward for number, layer in enumerate(self.layers)}
        spent = {part: each.start(memory.rows) for part, each in mixtures.items() if isinstance(each, Experts)}
        return {**state, COST: spent} if spent else state

    def step(self, token: Tensor, state: State, memory: Memory) -> tuple[Tensor, State]:
        found = self.read(token[:, None], Packing.unpadded(len(token), 1, token.device), state, memory)
        return self.project(found.hidden), {**found.state, "length": state["length"] + 1}

    def forward(self, memory: Memory, inputs: Padded, state: State | None = None, attention: bool = False) -> Output:
        if state is None:
            state = self.start_rows(memory, inputs.values.shape[0])
        packing = Packing(inputs.mask)
        found = self.read(inputs.values, packing, state, memory, attention)
        after = {**found.state, "length": state["length"] + inputs.lengths}
        return replace(found, hidden=packing.unpack(found.hidden), state=after)

    def read(self, tokens: Tensor, packing: Packing, state: State, memory: Memory, attention: bool = False) -> Output:
        """Hidden vectors of all new positions (N, size), KV cache and costs, on request attention maps and experts."""
        cache = state["cache"].grow(packing.mask, packing.full)
        positions = state["length"] if packing.full and packing.width == 1 else packing.offsets(state["length"])
        values = self.positioned(embed(self.embedding, packing.pack(tokens)), positions)  # (N, size)
        cross: list[Tensor] = []
        own: list[Tensor] = []
        routings: dict[str, Routing] = {}
        after: State = {"cache": cache}
        for number, layer in enumerate(self.layers):
            scope = memory.view(str(number)) if self.attends else memory
            values = self.before_layer(number, values, packing, state, after)
            values, to_memory, to_self, routing = layer.decode(values, packing, scope, cache, number, attention)
            if to_memory is not None:
                cross.append(to_memory)
            if to_self is not None:
                own.append(to_self)
            if routing is not None:
                routings[f"layers.{number}"] = routing
        maps = {"self": torch.stack(own, dim=1)} if attention else {}  # (rows, layers, heads, U, nodes)
        if cross:
            maps["source"] = torch.stack(cross, dim=1)  # (rows, layers, heads, U, T)
        if routings:
            spent = {part: routing.costs(packing) for part, routing in routings.items()}
            after[COST] = over_tensors(torch.add, state[COST], spent)
        experts = expert_maps(routings, packing) if attention else {}
        return Output(self.norm(values), self.project, after, maps, experts=experts)

    def before_layer(self, number: int, values: Tensor, packing: Packing, state: State, after: State) -> Tensor:
        """What a layer reads: the output of the one below, unless a subclass puts something between.  (N, size)

        What that keeps from one token to the next it finds in the state, and leaves in the one after.
        """
        return values
