"""Pointer network: each output is an element of the source, chosen by attention.

Vinyals, Fortunato & Jaitly 2015, eq. 3: with e_j the states of the source and d_i that of the decoder,
    u_ij = v . tanh(W1 e_j + W2 d_i)        p(i-th output is element j) = softmax_j u_ij
where element 0 is a learned end. The next input is the element itself (its coordinates, its token), not its state.
With `glimpses`, d_i first attends to the source that many times (Vinyals, Bengio & Kudlur 2016, section 4.2):
    d_i <- tanh(W [g; d_i]),  g = sum_j a_j e_j
The token of position j is vocabulary + j, so that with a source of T elements there are vocabulary + T tokens.
"""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from seqloom.contracts import Attention, Cell, Decoder
from seqloom.nn.attention.additive import Additive
from seqloom.nn.attention.scores import ScoredAttention
from seqloom.nn.cells.lstm import LSTM
from seqloom.nn.layers.bridge import Bridge, Kind, count_vectors
from seqloom.nn.layers.embedding import input_layer
from seqloom.nn.layers.recurrent import RecurrentStack
from seqloom.nn.ops.dropout import Dropout
from seqloom.types import Memory, Output, Padded, State


class Pointer(Decoder):
    """State: {"layers": cells}. All steps of teacher forcing run in one fused kernel."""

    eos: int
    chooses, reads_source = "places", True

    def __init__(
        self,
        *,
        vocabulary: int,
        memory_size: int,
        bos: int,
        eos: int,
        source_vocabulary: int | None = None,
        source_features: int | None = None,
        embedding_size: int = 256,
        size: int = 256,
        layers: int = 1,
        cell: Callable[..., Cell] = LSTM,
        attention: Callable[..., Attention] = Additive,
        glimpses: int = 0,
        bridge: Kind = "dense",
        dropout: float = 0.0,
        length_ratio: float = 2.0,
        length_offset: int = 10,
    ):
        super().__init__(bos=bos, eos=eos, lengths=(length_ratio, length_offset), memory_size=memory_size)
        if glimpses < 0:
            raise ValueError(f"glimpses = {glimpses} must be 0 or more")
        self.vocabulary = vocabulary
        self.hidden_size, self.glimpses = size, glimpses
        self.embedding = input_layer(source_vocabulary, source_features, embedding_size)
        self.begin = nn.Parameter(torch.randn(embedding_size) * embedding_size**-0.5)  # the input before the first
        self.end = nn.Parameter(torch.randn(memory_size) * memory_size**-0.5)  # in place of an encoder state: the end
        self.dropout = Dropout(dropout)
        self.stack = RecurrentStack(cell=cell, input_size=embedding_size, size=size, layers=layers, dropout=dropout)
        self.bridging = Bridge(bridge, memory_size=memory_size, size=size, entries=count_vectors(self.stack.start(0)))
        pointing = attention(query_size=size, memory_size=memory_size)
        if not isinstance(pointing, ScoredAttention):
            kind = type(pointing).__name__.lower()
            raise ValueError(
                f'attention.type = "{kind}": expected one that scores each element: additive, bilinear or dot'
            )
        if pointing.start(Memory.empty(0)):
            raise ValueError("attention.coverage = true: a pointer keeps no coverage; leave it out")
        self.pointing = pointing
        if glimpses:
            self.glimpse = attention(query_size=size, memory_size=memory_size)
            self.joining = nn.Linear(self.glimpse.output_size + size, size)

    def prepare(self, memory: Memory) -> Memory:
        extra = {
            "elements": self.embedding(memory.parts["source"].states),  # (B, T, E)
            "keys": self.pointing.keys(memory.states),  # (B, T, K)
            "end": self.pointing.keys(self.end.expand(memory.rows, 1, -1)),  # (B, 1, K)
        }
        if self.glimpses:
            extra["glimpse"] = self.glimpse.prepare(memory).extra
        return replace(memory.with_extra(**extra), parts={})

    def start(self, memory: Memory) -> State:
        return {"layers": self.bridging(memory, self.stack.start(memory.rows))}

    def step(self, token: Tensor, state: State, memory: Memory) -> tuple[Tensor, State]:
        hidden, layers = self.stack.step(self.dropout(self.element_vectors(token, memory)), state["layers"])
        return self.point(hidden[:, None], memory)[1][:, 0], {"layers": layers}

    def forward(self, memory: Memory, inputs: Padded, state: State | None = None, attention: bool = False) -> Output:
        if state is None:
            state = self.start_rows(memory, inputs.values.shape[0])
        stack_inputs = Padded(self.dropout(self.element_vectors(inputs.values, memory)), inputs.lengths)
        hidden, layers = self.stack.run(stack_inputs, state["layers"])
        hidden, scores = self.point(hidden, memory)
        maps = {}
        if attention:  # the probabilities of the elements, given that the output does not end
            weights = scores[:, :, self.vocabulary :].softmax(-1)
            maps["source"] = weights[:, None, None]  # (rows, 1, 1, U, T)
        return Output(hidden, lambda hidden: hidden, {"layers": layers}, maps, ready=scores)

    def element_vectors(self, tokens: Tensor, memory: Memory) -> Tensor:
        """The chosen elements as vectors; of a mixture the mean.  (rows, [U]) or (rows, V) -> (rows, [U,] E)"""
        elements = memory.extra["elements"]  # (B, T, E)
        if tokens.is_floating_point():
            shares = tokens[:, self.vocabulary :].unflatten(0, (memory.rows, -1))  # (B, n, T)
            return (shares @ elements).flatten(0, 1) + tokens[:, : self.vocabulary].sum(1, keepdim=True) * self.begin
        positions = (tokens - self.vocabulary).reshape(memory.rows, -1, 1)  # (B, n * U, 1)
        found = elements.gather(1, positions.clamp(min=0).expand(-1, -1, elements.shape[-1]))
        return torch.where(positions < 0, self.begin, found).view(*tokens.shape, -1)

    def point(self, hidden: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        """Queries and scores of all tokens.  (rows, U, size) -> (rows, U, size), (rows, U, vocabulary + T)"""
        query = self.dropout(hidden)
        for _ in range(self.glimpses):
            context, _, _ = self.glimpse(query, memory.view("glimpse"), {})
            query = torch.tanh(self.joining(torch.cat([context, query], dim=-1)))
        folded = query.reshape(memory.rows, -1, query.shape[-1])  # (B, n * U, size)
        element_scores = self.pointing.score(folded, memory.extra["keys"])  # (B, n * U, T)
        element_scores = element_scores.masked_fill(~memory.mask[:, None], float("-inf"))
        end = self.pointing.score(folded, memory.extra["end"])  # (B, n * U, 1)
        before, after = self.eos, self.vocabulary - self.eos - 1  # tokens that are never chosen
        others = functional.pad(end, (before, after), value=float("-inf"))
        return query, torch.cat([others, element_scores], dim=-1).view(*query.shape[:2], -1)
