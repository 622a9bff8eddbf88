"""The decoder of ConvS2S: causal gated convolutions, with attention in every layer.

Gehring, Auli, Grangier, Yarats & Dauphin 2017, sections 3.1 to 3.5. Of layer l, with output h_i, embedded input g_i,
encoder states z_j and embedded source e_j:
    d_i = (W_d h_i + b_d + g_i) sqrt(1/2)     the query                     eq. 1
    a_ij = softmax_j(d_i . z_j)               over m source positions
    c_i = sqrt(m) sum_j a_ij (z_j + e_j) sqrt(1/2)                          eq. 2, section 3.5
and the layer gives ((h_i + W_c c_i + b_c) sqrt(1/2) + its input) sqrt(1/2). Without an encoder it is the gated
convolutional language model of Dauphin, Fan, Auli & Grangier 2017.
"""

import math
from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import glu

from seqloom.nn.attention.scores import ScoredAttention
from seqloom.nn.decoders.stepping import step_by_forward
from seqloom.nn.decoders.vocabulary import VocabularyDecoder
from seqloom.nn.layers.convolution import Convolution
from seqloom.nn.layers.embedding import embed, embedding
from seqloom.nn.layers.positions import Learned
from seqloom.nn.ops.dropout import Dropout
from seqloom.nn.ops.linear import Linear
from seqloom.types import Memory, Output, Padded, State

HALF = math.sqrt(0.5)


class Layer(nn.Module):
    """One gated convolution and its attention."""

    def __init__(self, *, size: int, embedding_size: int, kernel: int, dropout: float, attends: bool):
        super().__init__()
        self.convolution = Convolution(
            input_size=size, output_size=2 * size, kernel=kernel, normed=True, variance=4 * (1 - dropout)
        )
        self.dropout = Dropout(dropout)
        self.query = Linear(size, embedding_size) if attends else None
        self.context = Linear(embedding_size, size) if attends else None

    def forward(
        self, inputs: Padded, before: Tensor, embedded: Tensor, memory: Memory
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """(rows, U, size) -> (rows, U, size), the state of the convolution, the weights (rows, 1, U, T)"""
        dropped = Padded(self.dropout(inputs.values), inputs.lengths)
        change, after = self.convolution.extend(dropped, before)
        values, weights = glu(change, dim=-1), None
        if self.query is not None and self.context is not None:
            query = (self.query(values) + embedded) * HALF  # (rows, U, embedding_size)
            context, weights = attend(query, memory)
            values = (values + self.context(context)) * HALF
        return (values + inputs.values) * HALF, after, weights


class ConvS2S(VocabularyDecoder):
    """State: {"layers": the last inputs of each convolution, "length": (rows,) how many tokens were read}."""

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
        kernel: int = 3,
        longest: int = 512,
        dropout: float = 0.1,
        tied: bool = True,
        length_ratio: float = 2.0,
        length_offset: int = 10,
    ):
        super().__init__(bos=bos, eos=eos, lengths=(length_ratio, length_offset))
        if layers < 1:
            raise ValueError(f"layers = {layers} must be 1 or more")
        if memory_size not in (0, embedding_size):
            raise ValueError(
                f"embedding_size = {embedding_size} must be {memory_size}, the size of the encoder's states"
            )
        self.hidden_size, self.longest, self.attends = embedding_size, longest, memory_size > 0
        self.embedding = embedding(vocabulary, embedding_size)
        self.positions = Learned(size=embedding_size, longest=longest)
        self.dropout = Dropout(dropout)
        self.enter = Linear(embedding_size, size)
        self.layers = cast(
            Sequence[Layer],
            nn.ModuleList(
                Layer(size=size, embedding_size=embedding_size, kernel=kernel, dropout=dropout, attends=self.attends)
                for _ in range(layers)
            ),
        )
        self.leave = Linear(size, embedding_size)
        self.output = None if tied else nn.Linear(embedding_size, vocabulary)

    def prepare(self, memory: Memory) -> Memory:
        """The values that are attended: z + e, or z if the encoder has left no embeddings."""
        if not self.attends:
            return memory
        embedded = memory.extra.get("embedded")
        values = memory.states if embedded is None else (memory.states + embedded) * HALF
        return memory.with_extra(values=values)

    def start(self, memory: Memory) -> State:
        layers = {str(number): layer.convolution.start(memory.rows) for number, layer in enumerate(self.layers)}
        length = torch.zeros(memory.rows, dtype=torch.long, device=self.embedding.weight.device)
        return {"layers": layers, "length": length}

    def step(self, token: Tensor, state: State, memory: Memory) -> tuple[Tensor, State]:
        return step_by_forward(self, token, state, memory)

    def forward(self, memory: Memory, inputs: Padded, state: State | None = None, attention: bool = False) -> Output:
        rows, width = inputs.values.shape[:2]
        if state is None:
            state = self.start_rows(memory, rows)
        positions = state["length"][:, None] + torch.arange(width, device=state["length"].device)
        embedded = self.dropout(embed(self.embedding, inputs.values) + self.positions(positions))
        values, after, maps = self.enter(embedded), {}, []
        for number, layer in enumerate(self.layers):
            entered = Padded(values, inputs.lengths)
            values, after[str(number)], weights = layer(entered, state["layers"][str(number)], embedded, memory)
            if weights is not None:
                maps.append(weights)
        hidden = self.dropout(self.leave(values))
        seen = {"source": torch.stack(maps, dim=1)} if attention and maps else {}  # (rows, layers, 1, U, T)
        return Output(hidden, self.project, {"layers": after, "length": state["length"] + inputs.lengths}, seen)


def attend(query: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
    """Contexts (rows, U, D) times the root of the number of positions, and weights (rows, 1, U, T)."""
    rows, width, _ = query.shape
    folded = query.reshape(memory.rows, -1, query.shape[-1])  # (B, n * U, D), n rows per source
    scores = ScoredAttention.mask_scores(folded @ memory.states.transpose(1, 2), memory)
    visible = scores.isfinite().sum(-1, keepdim=True).to(scores.dtype)
    weights = torch.softmax(scores, dim=-1)  # (B, n * U, T)
    context = weights @ memory.extra["values"] * visible.sqrt()
    return context.view(rows, width, -1), weights.view(rows, 1, width, -1)
