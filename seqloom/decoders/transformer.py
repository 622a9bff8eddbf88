"""Transformer decoder; on an empty memory a causal language model (GPT).

Vaswani et al. 2017, section 3.1; Radford et al. 2018 for the decoder alone.
"""

from collections.abc import Sequence
from typing import Literal, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from seqloom.contracts import Decoder
from seqloom.layers.embedding import Positioned, embedding
from seqloom.layers.transformer import Norm, TransformerLayer
from seqloom.types import Memory, Output, Padded, State


class Transformer(Decoder):
    """State: {"layers": caches, "seen": (rows, t) which cached positions are real, "clock": (rows,) how many}."""

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
        length_ratio: float = 2.0,
        length_offset: int = 10,
    ):
        super().__init__()
        self.bos, self.eos = bos, eos
        self.length_ratio, self.length_offset = length_ratio, length_offset
        self.longest = longest if positions == "learned" else None
        self.embedding = embedding(vocabulary, size)
        self.positioned = Positioned(size=size, positions=positions, longest=longest, dropout=dropout)
        self.layers = cast(
            Sequence[TransformerLayer],
            nn.ModuleList(
                TransformerLayer(
                    size=size, heads=heads, hidden=hidden, memory_size=memory_size, dropout=dropout, norm=norm
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
        prepared = {
            str(number): layer.cross_attention.prepare(memory).extra for number, layer in enumerate(self.layers)
        }
        return memory.with_extra(**prepared)

    def start(self, memory: Memory) -> State:
        rows = memory.rows
        empty = self.embedding.weight.new_zeros(rows, 0, self.embedding.embedding_dim)
        return {
            "layers": {str(number): {"keys": empty, "values": empty} for number in range(len(self.layers))},
            "seen": torch.zeros(rows, 0, dtype=torch.bool, device=empty.device),
            "clock": torch.zeros(rows, dtype=torch.long, device=empty.device),
        }

    def step(self, token: Tensor, state: State, memory: Memory) -> tuple[Tensor, State]:
        output = self(memory, Padded(token[:, None], torch.ones_like(token)), state)
        return output.scores[:, 0], output.state

    def forward(self, memory: Memory, inputs: Padded, state: State | None = None, attention: bool = False) -> Output:
        if state is None:
            state = self.start_rows(memory, inputs.values.shape[0])
        seen = torch.cat([state["seen"], inputs.mask], dim=1)  # (rows, t + U)
        past, length = state["seen"].shape[1], inputs.values.shape[1]
        allowed = None
        if past:  # what is cached and real, and new positions up to one's own
            causal = torch.ones(length, past + length, dtype=torch.bool, device=seen.device).tril(past)
            itself = causal & ~causal.tril(past - 1)  # so that even a padded query has something to see
            allowed = (causal & seen[:, None] | itself)[:, None]  # (rows, 1, U, t + U)

        values = self.positioned(self.embedding(inputs.values), state["clock"] if past else None)
        caches: State = {}
        cross: list[Tensor] = []
        own: list[Tensor] = []
        for number, layer in enumerate(self.layers):
            name = str(number)
            scope = memory.view(name) if self.attends else memory
            values, caches[name], to_memory, to_self = layer.decode(
                values, scope, state["layers"][name], allowed, attention
            )
            if to_memory is not None:
                cross.append(to_memory)
            if to_self is not None:
                own.append(to_self)
        hidden = self.norm(values)
        maps = {"self": torch.stack(own, dim=1)} if attention else {}  # (rows, layers, heads, U, t + U)
        if cross:
            maps["source"] = torch.stack(cross, dim=1)  # (rows, layers, heads, U, T)
        after = {"layers": caches, "seen": seen, "clock": state["clock"] + inputs.lengths}
        return Output(hidden, self.project, after, maps)

    def project(self, hidden: Tensor) -> Tensor:
        """(..., size) -> (..., V)"""
        return linear(hidden, self.embedding.weight) if self.output is None else self.output(hidden)
