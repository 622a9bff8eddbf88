"""The decoder of ByteNet: causal dilated convolutions stacked on the encoder, without attention.

Kalchbrenner et al. 2016, section 3. Output i is conditioned on state i of the memory (`condition = "unfold"`), and
beyond its last state on what was written alone; with `condition = "summary"` every output is conditioned on the summary
of the source. Without an encoder it is the paper's language model.
"""

from typing import Literal

import torch
from torch import Tensor, nn

from seqloom.nn.decoders.stepping import step_by_forward
from seqloom.nn.decoders.vocabulary import VocabularyDecoder
from seqloom.nn.layers.byte_net import ByteNetStack
from seqloom.nn.layers.embedding import embed, embedding
from seqloom.nn.ops.dropout import Dropout
from seqloom.nn.ops.linear import Linear
from seqloom.types import Memory, Output, Padded, State


class ByteNet(VocabularyDecoder):
    """State: {"layers": the last inputs of each convolution, "length": (rows,) how many tokens were read}."""

    def __init__(
        self,
        *,
        vocabulary: int,
        memory_size: int,
        bos: int,
        eos: int | None,
        size: int = 256,
        layers: int = 6,
        kernel: int = 3,
        dilations: tuple[int, ...] = (1, 2, 4),
        condition: Literal["unfold", "summary"] = "unfold",
        dropout: float = 0.1,
        tied: bool = False,
        length_ratio: float = 2.0,
        length_offset: int = 10,
    ):
        super().__init__(bos=bos, eos=eos, lengths=(length_ratio, length_offset))
        self.hidden_size, self.condition = size, condition
        self.embedding = embedding(vocabulary, size) if tied else nn.Embedding(vocabulary, size)
        self.dropout = Dropout(dropout)
        self.column = Linear(memory_size, size) if memory_size else None
        self.stack = ByteNetStack(
            size=size, layers=layers, kernel=kernel, dilations=dilations, causal=True, dropout=dropout
        )
        self.output = None if tied else nn.Linear(size, vocabulary)

    def prepare(self, memory: Memory) -> Memory:
        """Map the states to the width of the decoder, once per source."""
        if self.column is None or self.condition == "summary":
            return memory
        return memory.with_extra(columns=self.column(memory.states) * memory.mask[:, :, None])

    def start(self, memory: Memory) -> State:
        length = torch.zeros(memory.rows, dtype=torch.long, device=self.embedding.weight.device)
        return {"layers": self.stack.start(memory.rows), "length": length}

    def step(self, token: Tensor, state: State, memory: Memory) -> tuple[Tensor, State]:
        return step_by_forward(self, token, state, memory)

    def forward(self, memory: Memory, inputs: Padded, state: State | None = None, attention: bool = False) -> Output:
        rows, width = inputs.values.shape[:2]
        if state is None:
            state = self.start_rows(memory, rows)
        values = self.dropout(embed(self.embedding, inputs.values))  # (rows, U, size)
        if self.column is not None:
            places = state["length"][:, None] + torch.arange(width, device=state["length"].device)
            values = values + self.conditions(memory, places)
        hidden, layers = self.stack.extend(Padded(values, inputs.lengths), state["layers"])
        after = {"layers": layers, "length": state["length"] + inputs.lengths}
        return Output(self.dropout(hidden), self.project, after)

    def conditions(self, memory: Memory, places: Tensor) -> Tensor:
        """What outputs at these places (rows, U) are conditioned on.  (rows, U or 1, size)"""
        owner = memory.owner(len(places))
        if self.condition == "summary":
            assert self.column is not None
            summary: Tensor = self.column(memory.final["summary"])
            return summary.index_select(0, owner)[:, None]
        columns = memory.extra["columns"]  # (B, T, size)
        within = places < memory.lengths[owner][:, None]
        found = columns[owner[:, None], places.clamp(max=columns.shape[1] - 1)]
        return found * within[:, :, None]
