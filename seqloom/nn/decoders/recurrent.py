"""Recurrent decoder, with or without attention.

No attention: Sutskever, Vinyals & Le 2014; with `feed_context` the summary of the source enters every step, and with
`deep_output` logits are computed from [s; c; y], with y the embedded input token (Cho et al. 2014).
order="bahdanau" queries the memory with the state before the step (Bahdanau, Cho & Bengio 2015), order="luong" with the
state after it (Luong, Pham & Manning 2015), which lets all steps of teacher forcing run in one fused kernel. State and
context are combined by
    combine="concat"   tanh(W [c; s])                    Luong eq. 5
    combine="add"      W_out s + W_att c as logits       lecture 004
    combine="rnn"      one more recurrent step on c      lecture 002
    combine="state"    c is the new state                lecture 004
and with `input_feeding` the result enters the next step too. `order` and `combine` have no effect without attention.
With `experts` there is a mixture of experts before every layer but the first (Shazeer et al. 2017,
seqloom/nn/layers/experts.py).
"""

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn

from seqloom.contracts import Attention, Cell
from seqloom.nn.cells.lstm import LSTM
from seqloom.nn.decoders.vocabulary import VocabularyDecoder
from seqloom.nn.layers.bridge import Bridge, Kind, count_vectors
from seqloom.nn.layers.embedding import embed, embedding
from seqloom.nn.layers.experts import expert_maps
from seqloom.nn.layers.recurrent import RecurrentStack, Routings, without_experts
from seqloom.nn.ops.dropout import Dropout
from seqloom.nn.ops.packing import Packing
from seqloom.types import Memory, Output, Padded, State, hold


class Recurrent(VocabularyDecoder):
    """State: {"layers": cells, "attention": the attention's, "fed": (rows, width) with input feeding}."""

    def __init__(
        self,
        *,
        vocabulary: int,
        memory_size: int,
        bos: int,
        eos: int | None,
        embedding_size: int = 256,
        size: int = 256,
        layers: int = 1,
        cell: Callable[..., Cell] = LSTM,
        attention: Callable[..., Attention] | None = None,
        order: Literal["luong", "bahdanau"] = "luong",
        combine: Literal["concat", "add", "rnn", "state"] = "concat",
        input_feeding: bool = False,
        feed_context: bool = False,
        deep_output: bool = False,
        bridge: Kind = "dense",
        residual: bool = False,
        dropout: float = 0.0,
        tied: bool = False,
        experts: int = 0,
        active_experts: int = 2,
        expert_hidden: int = 512,
        length_ratio: float = 2.0,
        length_offset: int = 10,
    ):
        super().__init__(bos=bos, eos=eos, lengths=(length_ratio, length_offset))
        if attention is not None and not memory_size:
            raise ValueError("attention needs an encoder to attend to: add [encoder], or leave attention out")
        if input_feeding and attention is None:
            raise ValueError("input_feeding needs attention: set decoder.attention, or leave input_feeding out")
        if combine == "state" and order == "bahdanau":
            raise ValueError('combine = "state" needs order = "luong": else the context replaces the step itself')
        if feed_context and not memory_size:
            raise ValueError("feed_context needs an encoder, whose summary it feeds: add [encoder], or leave it out")
        if experts and layers < 2:
            raise ValueError("experts stand between layers: set layers = 2 or more")
        self.order, self.combine = order, combine
        self.feed_context, self.deep_output = feed_context, deep_output
        self.embedding = embedding(vocabulary, embedding_size) if tied else nn.Embedding(vocabulary, embedding_size)
        self.dropout = Dropout(dropout)

        self.attention = attention(query_size=size, memory_size=memory_size) if attention else None
        context_size = self.attention.output_size if self.attention else 0
        # A decoder that starts from the summary has read the whole source.
        self.online = self.attention is not None and self.attention.monotonic and bridge == "zero" and not feed_context
        self.hidden_size = size
        if self.attention is not None:
            if combine == "concat":
                self.hidden_size = embedding_size if tied else size
                self.join = nn.Linear(context_size + size, self.hidden_size)
            elif combine == "add":
                self.hidden_size = size + context_size
            elif combine == "rnn":
                self.refine = cell(input_size=context_size, size=size)
            else:
                self.become = nn.Identity() if context_size == size else nn.Linear(context_size, size, bias=False)
        self.fed_size = (context_size if combine == "add" else self.hidden_size) if input_feeding else 0
        if deep_output:
            self.hidden_size += (context_size if self.attention else memory_size) + embedding_size
        if tied and self.hidden_size != embedding_size:
            raise ValueError(f"tied = true needs embedding_size = {self.hidden_size}, the width before the softmax")
        self.output = None if tied else nn.Linear(self.hidden_size, vocabulary)

        context_input = context_size if order == "bahdanau" else 0
        summary = memory_size if feed_context else 0
        self.stack = RecurrentStack(
            cell=cell,
            input_size=embedding_size + summary + self.fed_size + context_input,
            size=size,
            layers=layers,
            residual=residual,
            dropout=dropout,
            experts=experts,
            active_experts=active_experts,
            expert_hidden=expert_hidden,
        )
        entries, inputs = count_vectors(self.stack.start(0)), embedding_size
        self.bridging = Bridge(bridge, memory_size=memory_size, size=size, entries=entries, input_size=inputs)

    def prepare(self, memory: Memory) -> Memory:
        return self.attention.prepare(memory) if self.attention is not None else memory

    def start(self, memory: Memory) -> State:
        rows = memory.rows
        state: State = {"layers": self.bridging(memory, self.stack.start(rows))}
        if self.attention is not None:
            state["attention"] = self.attention.start(memory)
        if self.fed_size:
            state["fed"] = self.embedding.weight.new_zeros(rows, self.fed_size)
        if (first := self.bridging.first_input(memory)) is not None:
            _, state, _ = self.advance(self.dropout(first), state, memory)
        return state

    def step(self, token: Tensor, state: State, memory: Memory) -> tuple[Tensor, State]:
        hidden, state, _ = self.advance(self.dropout(embed(self.embedding, token)), state, memory)
        scores = self.project(hidden)
        if self.attention is not None:
            scores = self.attention.hold_back(scores, state["attention"], memory)
        return scores, state

    def states_read(self, state: State, memory: Memory) -> Tensor | None:
        return (
            self.attention.states_read(state["attention"], memory)
            if self.online and self.attention is not None
            else None
        )

    def first_needed(self, state: State) -> int:
        return 0 if self.attention is None else self.attention.first_needed(state["attention"])

    def forward(self, memory: Memory, inputs: Padded, state: State | None = None, attention: bool = False) -> Output:
        if state is None:
            state = self.start_rows(memory, inputs.values.shape[0])
        embedded = self.dropout(embed(self.embedding, inputs.values))  # (rows, U, E)
        run = self.unroll if self.unrolls else self.run
        hidden, state, weights, experts = run(embedded, inputs, state, memory, attention)
        maps = {"source": weights[:, None]} if attention and weights is not None else {}  # (rows, 1, heads, U, T)
        return Output(hidden, self.project, state, maps, experts=experts if attention else {})

    @property
    def unrolls(self) -> bool:
        """Whether a step needs the attention of the one before, so that training goes step by step."""
        if self.attention is None:
            return False
        return self.fed_size > 0 or self.order == "bahdanau" or self.combine in ("rnn", "state")

    def run(
        self, embedded: Tensor, inputs: Padded, state: State, memory: Memory, weights: bool
    ) -> tuple[Tensor, State, Tensor | None, dict[str, Tensor]]:
        """All steps at once: the whole recurrence first, then the whole attention."""
        stack_inputs = Padded(self.stack_inputs(embedded, memory), inputs.lengths)
        routings: Routings = {}
        hidden, layers = self.stack.run(stack_inputs, state["layers"], routings)
        after = {**state, "layers": layers}
        context = weight = None
        if self.attention is not None:
            context, after["attention"], weight = self.attention(
                hidden, memory, state["attention"], weights, inputs.lengths
            )
            hidden = self.join_context(hidden, context)
        experts = expert_maps(routings, Packing(inputs.mask)) if weights and routings else {}
        return self.before_softmax(hidden, context, embedded, memory), after, weight, experts

    def unroll(
        self, embedded: Tensor, inputs: Padded, state: State, memory: Memory, weights: bool
    ) -> tuple[Tensor, State, Tensor | None, dict[str, Tensor]]:
        """Step by step; a row that has ended keeps its state."""
        hiddens: list[Tensor] = []
        maps: list[Tensor] = []
        used: list[Routings] = []
        running = inputs.mask
        for time, row in enumerate(embedded.unbind(1)):
            used.append({})
            hidden, new, weight = self.advance(row, state, memory, weights, used[-1])
            state = hold(~running[:, time], new, state)
            hiddens.append(hidden)
            if weight is not None:
                maps.append(weight)
        experts = {part: torch.stack([each[part].chosen for each in used], dim=1) for part in used[0]}  # (rows, U, k)
        return torch.stack(hiddens, dim=1), state, torch.cat(maps, dim=2) if maps else None, experts

    def advance(
        self,
        embedded: Tensor,
        state: State,
        memory: Memory,
        weights: bool = False,
        routings: Routings | None = None,
    ) -> tuple[Tensor, State, Tensor | None]:
        """One step.  (rows, E) -> (rows, hidden_size)"""
        inputs = [self.stack_inputs(embedded, memory)]
        after: State = {}
        context = weight = None
        top = str(len(self.stack.cells) - 1)
        if self.fed_size:
            inputs.append(state["fed"])
        if self.attention is not None and self.order == "bahdanau":
            before = state["layers"][top]["hidden"]
            context, after["attention"], weight = self.attention(before[:, None], memory, state["attention"], weights)
            inputs.append(context[:, 0])
        hidden, after["layers"] = self.stack.step(torch.cat(inputs, dim=-1), state["layers"], routings)
        if self.attention is None:
            return self.before_softmax(hidden, None, embedded, memory), after, None
        if context is None:
            context, after["attention"], weight = self.attention(hidden[:, None], memory, state["attention"], weights)
        context = context[:, 0]
        if self.combine == "rnn":
            hidden, refined = self.refine(self.refine.project(context), without_experts(after["layers"][top]))
            if "cost" in refined:  # the refined state itself is not carried on
                after["layers"] = {**after["layers"], top: {**after["layers"][top], "cost": refined["cost"]}}
        elif self.combine == "state":
            hidden = self.become(context)
            after["layers"] = {**after["layers"], top: {**after["layers"][top], "hidden": hidden}}
        else:
            hidden = self.join_context(hidden, context)
        if self.fed_size:
            after["fed"] = context if self.combine == "add" else self.dropout(hidden)
        return self.before_softmax(hidden, context, embedded, memory), after, weight

    def stack_inputs(self, embedded: Tensor, memory: Memory) -> Tensor:
        """The input of the recurrent layers, with the summary if it is fed.  (rows, [U,] E) -> (rows, [U,] E + D)"""
        if not self.feed_context:
            return embedded
        return torch.cat([embedded, self.summary(embedded, memory)], dim=-1)

    @staticmethod
    def summary(like: Tensor, memory: Memory) -> Tensor:
        """The summary of each row's source, repeated for each step.  (rows, [U,] D)"""
        rows = memory.final["summary"].index_select(0, memory.owner(like.shape[0]))
        return rows if like.dim() == 2 else rows[:, None].expand(-1, like.shape[1], -1)

    def join_context(self, output: Tensor, context: Tensor) -> Tensor:
        """State and context as one vector.  (..., size), (..., context_size) -> (..., width)"""
        if self.combine == "add":  # the output layer then computes W_out s + W_att c
            return torch.cat([output, context], dim=-1)
        return torch.tanh(self.join(torch.cat([context, output], dim=-1)))

    def before_softmax(self, hidden: Tensor, context: Tensor | None, embedded: Tensor, memory: Memory) -> Tensor:
        """What is projected to logits: the state, or [s; c; y].  (..., width) -> (..., hidden_size)"""
        hidden = self.dropout(hidden)
        if not self.deep_output:
            return hidden
        if context is None and memory.final:
            context = self.summary(embedded, memory)
        return torch.cat([hidden, embedded] if context is None else [hidden, context, embedded], dim=-1)
