"""Classification: one token per source, softmax(W s), where s is the encoder's summary of the source.

The answer of a memory network (Sukhbaatar et al. 2015, eq. 3); with `share_embeddings` W is the table of its last hop.
"""

import torch
from torch import Tensor

from seqloom.contracts import Head
from seqloom.errors import SeqloomError
from seqloom.nn.layers.embedding import embedding
from seqloom.nn.ops.linear import Projection
from seqloom.types import Memory, Output, Padded, State


class Word(Head):
    """Its attention is that of the encoder's hops, where there are any."""

    def __init__(self, *, vocabulary: int, memory_size: int, pad: int):
        super().__init__(memory_size=memory_size)
        self.pad, self.hidden_size = pad, memory_size
        self.embedding = embedding(vocabulary, memory_size)

    def forward(self, memory: Memory, inputs: Padded, state: State | None = None, attention: bool = False) -> Output:
        owner = memory.owner(rows_of_one_token(inputs, "word"))
        maps = {"source": memory.extra["hops"][owner]} if attention and "hops" in memory.extra else {}
        return Output(memory.final["summary"][owner, None], self.projection(), {}, maps)  # (rows, 1, memory_size)

    def projection(self) -> Projection:
        """W, with -inf as the bias of padding, which is no answer and whose vector gets no gradient."""
        weight = self.embedding.weight
        bias = torch.zeros_like(weight[:, 0].detach())
        bias[self.pad] = float("-inf")
        return Projection(weight, bias)

    def answer(self, memory: Memory) -> Padded:
        scores: Tensor = self.projection()(memory.final["summary"])  # (B, V)
        return Padded(scores.argmax(-1, keepdim=True), memory.lengths.new_ones(memory.rows))


def rows_of_one_token(inputs: Padded, kind: str) -> int:
    """The number of rows, each of which must have one token."""
    rows, length = inputs.values.shape
    if length != 1:
        raise SeqloomError(
            f"{kind} outputs one token per source, but a target has {length}: "
            'set task.type = "answer", and give targets of one word'
        )
    return rows
