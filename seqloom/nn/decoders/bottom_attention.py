"""Deep decoders whose bottom layer alone has attention: only this layer is unrolled in training.

The query is the bottom layer's last output, a_i = attention(s_{i-1}, x), and a_i enters the layer beside the embedded
token: the order of Bahdanau, Cho & Bengio 2015. The layers above run over all steps at once.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from seqloom.contracts import Attention, Cell
from seqloom.nn.decoders.stepping import step_by_forward
from seqloom.nn.decoders.vocabulary import VocabularyDecoder
from seqloom.nn.layers.bridge import Bridge, Kind, count_vectors
from seqloom.nn.layers.embedding import embed, embedding
from seqloom.nn.ops.dropout import Dropout
from seqloom.types import Memory, Output, Padded, State, hold


@dataclass(frozen=True)
class Bottom:
    """What the bottom layer did at each step."""

    projected: list[Tensor]  # (rows, G) each: the input half of its steps
    outputs: Tensor  # (rows, U, size)
    contexts: Tensor  # (rows, U, C)
    weights: Tensor | None  # (rows, heads, U, T)
    state: State  # {"bottom": the cell's, "attention": the attention's}


class BottomAttention(VocabularyDecoder):
    """State: {"layers": cells, "attention": the attention's}."""

    def __init__(
        self,
        *,
        vocabulary: int,
        memory_size: int,
        bos: int,
        eos: int | None,
        embedding_size: int,
        size: int,
        layers: int,
        cell: Callable[..., Cell],
        attention: Callable[..., Attention],
        bridge: Kind,
        dropout: float,
        tied: bool,
        lengths: tuple[float, int],
    ):
        super().__init__(bos=bos, eos=eos, lengths=lengths, memory_size=memory_size)
        if layers < 1:
            raise ValueError(f"layers = {layers} must be 1 or more")
        if tied and size != embedding_size:
            raise ValueError(f"tied = true needs embedding_size = {size}, the width before the softmax")
        self.hidden_size = size
        self.embedding = embedding(vocabulary, embedding_size) if tied else nn.Embedding(vocabulary, embedding_size)
        self.dropout = Dropout(dropout)
        self.attention = attention(query_size=size, memory_size=memory_size)
        cells = [cell(input_size=embedding_size + self.attention.output_size, size=size)]
        for _ in range(layers - 1):
            cells.append(cell(input_size=self.input_size_above(cells[-1]), size=size))
        self.cells = cast(Sequence[Cell], nn.ModuleList(cells))
        entries = count_vectors({str(layer): one.start(0) for layer, one in enumerate(self.cells)})
        self.bridging = Bridge(bridge, memory_size=memory_size, size=size, entries=entries)
        self.output = None if tied else nn.Linear(size, vocabulary)

    @abstractmethod
    def input_size_above(self, below: Cell) -> int:
        """How wide the input of a layer is, given the cell below it."""

    @abstractmethod
    def run_above(self, bottom: Bottom, lengths: Tensor, state: State) -> tuple[Tensor, State]:
        """The other layers: outputs of the top one (rows, U, size), and the state of each, {"1": ..., "2": ...}."""

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
        bottom = self.run_bottom(embedded, inputs.mask, state, memory, attention)
        hidden, above = self.run_above(bottom, inputs.lengths, state["layers"])
        after = {"layers": {"0": bottom.state["bottom"], **above}, "attention": bottom.state["attention"]}
        maps = {"source": bottom.weights[:, None]} if bottom.weights is not None else {}  # (rows, 1, heads, U, T)
        return Output(self.dropout(hidden), self.project, after, maps)

    def run_bottom(self, embedded: Tensor, running: Tensor, state: State, memory: Memory, weights: bool) -> Bottom:
        """The bottom layer and its attention, step by step; a row that has ended keeps its state."""
        cell = self.cells[0]
        now: State = {"bottom": state["layers"]["0"], "attention": state["attention"]}
        halves, outputs, contexts, maps = [], [], [], []
        for time, vector in enumerate(embedded.unbind(1)):
            query = now["bottom"]["hidden"][:, None]
            context, attention_state, weight = self.attention(query, memory, now["attention"], weights)
            projected = cell.project(torch.cat([vector, context[:, 0]], dim=-1))
            output, after = cell(projected, now["bottom"])
            now = hold(~running[:, time], {"bottom": after, "attention": attention_state}, now)
            halves.append(projected)
            outputs.append(output)
            contexts.append(context)
            if weight is not None:
                maps.append(weight)
        seen = torch.cat(maps, dim=2) if maps else None
        return Bottom(halves, torch.stack(outputs, dim=1), torch.cat(contexts, dim=1), seen, now)
