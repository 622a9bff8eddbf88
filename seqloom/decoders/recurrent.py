"""Recurrent decoder, with or without attention.

No attention: Sutskever, Vinyals & Le 2014. order="bahdanau" asks the memory with the state before the step
(Bahdanau, Cho & Bengio 2015), order="luong" with the state after it (Luong, Pham & Manning 2015), which lets
all steps of teacher forcing run in one fused kernel. The context joins the state by
    combine="concat"   tanh(W [c; s])                    Luong eq. 5
    combine="add"      W_out s + W_att c as logits       lecture 004
    combine="rnn"      one more recurrent step on c      lecture 002
and with `input_feeding` enters the next step too.
"""

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from seqloom.cells.lstm import LSTM
from seqloom.contracts import Attention, Cell, Decoder
from seqloom.layers.recurrent import RecurrentStack
from seqloom.types import Memory, Output, Padded, State, hold


class Recurrent(Decoder):
    """State: {"layers": cells, "attention": its own, "fed": (rows, width) with input feeding}."""

    def __init__(
        self,
        *,
        vocabulary: int,
        memory_size: int,
        bos: int,
        eos: int,
        embedding_size: int = 256,
        size: int = 256,
        layers: int = 1,
        cell: Callable[..., Cell] = LSTM,
        attention: Callable[..., Attention] | None = None,
        order: Literal["luong", "bahdanau"] = "luong",
        combine: Literal["concat", "add", "rnn"] = "concat",
        input_feeding: bool = False,
        bridge: Literal["dense", "copy", "zero"] = "dense",
        residual: bool = False,
        dropout: float = 0.0,
        tied: bool = False,
        length_ratio: float = 2.0,
        length_offset: int = 10,
    ):
        super().__init__()
        if attention is not None and not memory_size:
            raise ValueError("attention needs an encoder to attend: add [encoder], or leave attention out")
        if input_feeding and attention is None:
            raise ValueError("input_feeding feeds the attention back: it needs attention")
        self.bos, self.eos = bos, eos
        self.length_ratio, self.length_offset = length_ratio, length_offset
        self.size, self.order, self.combine = size, order, combine
        self.embedding = nn.Embedding(vocabulary, embedding_size)
        self.dropout = nn.Dropout(dropout)

        self.attention = attention(query_size=size, memory_size=memory_size) if attention else None
        context_size = self.attention.output_size if self.attention else 0
        self.hidden_size = size
        if self.attention is not None:
            if combine == "concat":
                self.hidden_size = embedding_size if tied else size
                self.join = nn.Linear(context_size + size, self.hidden_size)
            elif combine == "add":
                self.hidden_size = size + context_size
            else:
                self.refine = cell(input_size=context_size, size=size)
        if tied and self.hidden_size != embedding_size:
            raise ValueError(f"tied needs embedding_size = {self.hidden_size}, the width before the softmax")
        self.output = None if tied else nn.Linear(self.hidden_size, vocabulary)

        self.fed_size = (context_size if combine == "add" else self.hidden_size) if input_feeding else 0
        looked_up = context_size if order == "bahdanau" else 0
        self.stack = RecurrentStack(
            cell=cell,
            input_size=embedding_size + self.fed_size + looked_up,
            size=size,
            layers=layers,
            residual=residual,
            dropout=dropout,
        )
        self.bridge = bridge if memory_size else "zero"
        if self.bridge == "copy" and memory_size != size:
            raise ValueError(f'bridge = "copy" needs size = {memory_size}, the size of the encoder')
        if self.bridge == "dense":
            entries = sum(len(state) for state in self.stack.start(0).values())
            self.bridging = nn.Linear(memory_size, entries * size)

    def prepare(self, memory: Memory) -> Memory:
        return self.attention.prepare(memory) if self.attention is not None else memory

    def start(self, memory: Memory) -> State:
        rows = memory.rows
        layers = self.stack.start(rows)
        if self.bridge == "copy":
            given = memory.final.get("layers", {})
            if {name: state.keys() for name, state in given.items()} != {
                name: own.keys() for name, own in layers.items()
            }:
                raise ValueError('bridge = "copy" needs an encoder with the same cells and layers')
            layers = memory.final["layers"]
        elif self.bridge == "dense":
            values = torch.tanh(self.bridging(memory.final["summary"]))  # (B, entries * size)
            parts = iter(values.split(self.size, dim=-1))
            layers = {layer: {name: next(parts) for name in state} for layer, state in layers.items()}
        state: State = {"layers": layers}
        if self.attention is not None:
            state["attention"] = self.attention.start(memory)
        if self.fed_size:
            state["fed"] = self.embedding.weight.new_zeros(rows, self.fed_size)
        return state

    def step(self, token: Tensor, state: State, memory: Memory) -> tuple[Tensor, State]:
        hidden, state, _ = self.advance(self.dropout(self.embedding(token)), state, memory)
        return self.project(hidden), state

    def forward(self, memory: Memory, inputs: Padded, state: State | None = None, attention: bool = False) -> Output:
        if state is None:
            state = self.start_rows(memory, inputs.values.shape[0])
        embedded = self.dropout(self.embedding(inputs.values))  # (rows, U, E)
        if self.unrolls:
            hidden, state, weights = self.unroll(embedded, inputs, state, memory, attention)
        else:
            hidden, state, weights = self.run(Padded(embedded, inputs.lengths), state, memory, attention)
        maps = {"source": weights[:, None]} if attention and weights is not None else {}  # (rows, 1, heads, U, T)
        return Output(hidden, self.project, state, maps)

    @property
    def unrolls(self) -> bool:
        """Whether a step needs what attention said before, so that steps must go one by one."""
        if self.attention is None:
            return False
        return self.fed_size > 0 or self.order == "bahdanau" or self.combine == "rnn"

    def run(self, embedded: Padded, state: State, memory: Memory, weights: bool) -> tuple[Tensor, State, Tensor | None]:
        """All steps in one: the whole recurrence first, then the whole attention."""
        outputs, layers = self.stack.run(embedded, state["layers"])
        after = {**state, "layers": layers}
        if self.attention is None:
            return self.dropout(outputs), after, None
        context, after["attention"], weight = self.attention(outputs, memory, state["attention"], weights)
        return self.dropout(self.joined(outputs, context)), after, weight

    def unroll(
        self, embedded: Tensor, inputs: Padded, state: State, memory: Memory, weights: bool
    ) -> tuple[Tensor, State, Tensor | None]:
        """Step after step; a row that has ended keeps its state."""
        hiddens: list[Tensor] = []
        maps: list[Tensor] = []
        running = inputs.mask
        for time, row in enumerate(embedded.unbind(1)):
            hidden, new, weight = self.advance(row, state, memory, weights)
            state = hold(~running[:, time], new, state)
            hiddens.append(hidden)
            if weight is not None:
                maps.append(weight)
        return torch.stack(hiddens, dim=1), state, torch.cat(maps, dim=2) if maps else None

    def advance(
        self, embedded: Tensor, state: State, memory: Memory, weights: bool = False
    ) -> tuple[Tensor, State, Tensor | None]:
        """One step.  (rows, E) -> (rows, hidden_size)"""
        inputs = [embedded]
        after: State = {}
        context = weight = None
        if self.fed_size:
            inputs.append(state["fed"])
        if self.attention is not None and self.order == "bahdanau":
            before = state["layers"][str(len(self.stack.cells) - 1)]["hidden"]
            context, after["attention"], weight = self.attention(before[:, None], memory, state["attention"], weights)
            inputs.append(context[:, 0])
        output, after["layers"] = self.stack.step(torch.cat(inputs, dim=-1), state["layers"])
        if self.attention is None:
            return self.dropout(output), after, None
        if context is None:
            context, after["attention"], weight = self.attention(output[:, None], memory, state["attention"], weights)
        context = context[:, 0]
        if self.combine == "rnn":
            top = after["layers"][str(len(self.stack.cells) - 1)]
            hidden, _ = self.refine(self.refine.project(context), top)
        else:
            hidden = self.joined(output, context)
        hidden = self.dropout(hidden)
        if self.fed_size:
            after["fed"] = context if self.combine == "add" else hidden
        return hidden, after, weight

    def joined(self, output: Tensor, context: Tensor) -> Tensor:
        """State and context as one vector: (..., size), (..., context_size) -> (..., hidden_size)"""
        if self.combine == "add":  # the output layer then computes W_out s + W_att c
            return torch.cat([output, context], dim=-1)
        return torch.tanh(self.join(torch.cat([context, output], dim=-1)))

    def project(self, hidden: Tensor) -> Tensor:
        """(..., hidden_size) -> (..., V)"""
        return linear(hidden, self.embedding.weight) if self.output is None else self.output(hidden)
