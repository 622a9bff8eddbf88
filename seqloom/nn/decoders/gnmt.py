"""The decoder of Google's translator: a deep stack that shares the attention of its bottom layer.

Wu et al. 2016, section 3: the bottom layer's last output is the query, a_i = attention(s_{i-1}, x), and a_i enters
every layer beside the output of the layer below; residual connections from the third layer on.
"""

from collections.abc import Callable, Sequence
from typing import cast

import torch
from torch import Tensor, nn

from seqloom.contracts import Attention, Cell
from seqloom.nn.attention.additive import Additive
from seqloom.nn.cells.lstm import LSTM
from seqloom.nn.decoders.stepping import step_by_forward
from seqloom.nn.decoders.vocabulary import VocabularyDecoder
from seqloom.nn.layers.bridge import Bridge, Kind, count_vectors
from seqloom.nn.layers.embedding import embed, embedding
from seqloom.nn.ops.dropout import Dropout
from seqloom.types import Memory, Output, Padded, State, hold


class GNMT(VocabularyDecoder):
    """State: {"layers": cells, "attention": the attention's}. Only the bottom layer is unrolled in training."""

    def __init__(
        self,
        *,
        vocabulary: int,
        memory_size: int,
        bos: int,
        eos: int | None,
        embedding_size: int = 256,
        size: int = 256,
        layers: int = 4,
        cell: Callable[..., Cell] = LSTM,
        attention: Callable[..., Attention] = Additive,
        bridge: Kind = "dense",
        residual: bool = True,
        dropout: float = 0.0,
        tied: bool = False,
        length_ratio: float = 2.0,
        length_offset: int = 10,
    ):
        super().__init__(bos=bos, eos=eos, lengths=(length_ratio, length_offset), memory_size=memory_size)
        if layers < 1:
            raise ValueError(f"layers = {layers} must be 1 or more")
        if tied and size != embedding_size:
            raise ValueError(f"tied = true needs embedding_size = {size}, the width before the softmax")
        self.residual, self.hidden_size = residual, size
        self.embedding = embedding(vocabulary, embedding_size) if tied else nn.Embedding(vocabulary, embedding_size)
        self.dropout = Dropout(dropout)
        self.attention = attention(query_size=size, memory_size=memory_size)
        widths = [embedding_size, *[size] * (layers - 1)]
        self.cells = cast(
            Sequence[Cell],
            nn.ModuleList(cell(input_size=width + self.attention.output_size, size=size) for width in widths),
        )
        entries = count_vectors({str(layer): one.start(0) for layer, one in enumerate(self.cells)})
        self.bridging = Bridge(bridge, memory_size=memory_size, size=size, entries=entries)
        self.output = None if tied else nn.Linear(size, vocabulary)

    def prepare(self, memory: Memory) -> Memory:
        return self.attention.prepare(memory)

    def start(self, memory: Memory) -> State:
        own = {str(layer): cell.start(memory.rows) for layer, cell in enumerate(self.cells)}
        return {"layers": self.bridging(memory, own), "attention": self.attention.start(memory)}

    def step(self, token: Tensor, state: State, memory: Memory) -> tuple[Tensor, State]:
        scores, state = step_by_forward(self, token, state, memory)
        return self.attention.hold_back(scores, state["attention"], memory), state

    def first_needed(self, state: State) -> int:
        return self.attention.first_needed(state["attention"])

    def forward(self, memory: Memory, inputs: Padded, state: State | None = None, attention: bool = False) -> Output:
        if state is None:
            state = self.start_rows(memory, inputs.values.shape[0])
        embedded = self.dropout(embed(self.embedding, inputs.values))  # (rows, U, E)
        values, contexts, bottom, weights = self.run_bottom(embedded, inputs.mask, state, memory, attention)
        layers: State = {"0": bottom["bottom"]}
        for layer, cell in enumerate(self.cells[1:], start=1):
            below = self.dropout(values)
            layer_inputs = Padded(torch.cat([below, contexts], dim=-1), inputs.lengths)
            values, layers[str(layer)] = cell.run(layer_inputs, state["layers"][str(layer)])
            if self.residual and layer >= 2:
                values = values + below
        after = {"layers": layers, "attention": bottom["attention"]}
        maps = {"source": weights[:, None]} if weights is not None else {}  # (rows, 1, heads, U, T)
        return Output(self.dropout(values), self.project, after, maps)

    def run_bottom(
        self, embedded: Tensor, running: Tensor, state: State, memory: Memory, weights: bool
    ) -> tuple[Tensor, Tensor, State, Tensor | None]:
        """The bottom layer and its attention: outputs (rows, U, size), contexts (rows, U, C), state, weights."""
        cell = self.cells[0]
        now: State = {"bottom": state["layers"]["0"], "attention": state["attention"]}
        outputs, contexts, maps = [], [], []
        for time, vector in enumerate(embedded.unbind(1)):
            query = now["bottom"]["hidden"][:, None]
            context, attention_state, weight = self.attention(query, memory, now["attention"], weights)
            layer_inputs = torch.cat([vector, context[:, 0]], dim=-1)
            output, bottom = cell(cell.project(layer_inputs), now["bottom"])
            now = hold(~running[:, time], {"bottom": bottom, "attention": attention_state}, now)
            outputs.append(output)
            contexts.append(context)
            if weight is not None:
                maps.append(weight)
        seen = torch.cat(maps, dim=2) if maps else None
        return torch.stack(outputs, dim=1), torch.cat(contexts, dim=1), now, seen
