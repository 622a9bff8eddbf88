"""Stochastic emissions: at each state of the source a binary variable decides whether a token is written.

Luo, Chiu, Jaitly & Sutskever 2016, section 2: h_i = RNN(h_{i-1}, [x_i; y; b_{i-1}]), with y the last token written;
b_i ~ Bernoulli(sigmoid(w . h_i)), and where b_i = 1 a token ~ softmax(W h_i), else a blank.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from seqloom.contracts import Cell, Online
from seqloom.nn.cells.lstm import LSTM
from seqloom.nn.decoders.stepping import step_by_forward
from seqloom.nn.layers.recurrent import RecurrentStack
from seqloom.nn.ops.dropout import Dropout
from seqloom.types import Memory, Output, Padded, State, positions_below

AT_STATE, PAST_END, WAITING = range(3)  # a row's status: it is at a state, after the last one, or waits for the next


@dataclass(frozen=True)
class EmissionPath:
    """Targets with blanks between, one token or blank per state of the source."""

    inputs: Padded  # (rows, T + 1): BOS, then a token or a blank for each state
    targets: Padded  # the inputs shifted by one, EOS last
    free: Tensor  # (rows, T + 1): whether both choices were open; not where all or none of the states left must emit
    possible: Tensor  # (rows,): false where there are more tokens than states; such rows are all blanks


class Emission(Online):
    """State: {"frame", "last": the last token written, "layers": cells}.

    `bias` is the initial bias of the emission logit: the lower, the later tokens are written. The last component of
    the hidden vectors is the row's status.
    """

    eos: int
    advances: Literal["blank", "all"] = "all"
    trained_by = "emission"

    def __init__(
        self,
        *,
        vocabulary: int,
        memory_size: int,
        bos: int,
        eos: int,
        blank: int,
        embedding_size: int = 256,
        size: int = 256,
        layers: int = 1,
        cell: Callable[..., Cell] = LSTM,
        bias: float = -1.0,
        residual: bool = False,
        dropout: float = 0.0,
    ):
        super().__init__(bos=bos, eos=eos, blank=blank, memory_size=memory_size)
        self.memory_size, self.hidden_size = memory_size, size + 1
        self.embedding = nn.Embedding(vocabulary, embedding_size)
        self.dropout = Dropout(dropout)
        self.stack = RecurrentStack(
            cell=cell,
            input_size=memory_size + embedding_size + 1,
            size=size,
            layers=layers,
            residual=residual,
            dropout=dropout,
        )
        self.coin = nn.Linear(size, 1)
        nn.init.constant_(self.coin.bias, bias)
        self.output = nn.Linear(size, vocabulary)

    def prepare(self, memory: Memory) -> Memory:
        return memory

    def limit(self, memory: Memory) -> Tensor:
        return memory.offset + memory.lengths + 1

    def start(self, memory: Memory) -> State:
        zeros = torch.zeros_like(memory.lengths)
        return {"frame": zeros, "last": zeros + self.bos, "layers": self.stack.start(memory.rows)}

    def step(self, token: Tensor, state: State, memory: Memory) -> tuple[Tensor, State]:
        return step_by_forward(self, token, state, memory)

    def forward(self, memory: Memory, inputs: Padded, state: State | None = None, attention: bool = False) -> Output:
        tokens = inputs.values
        state = self.start_rows(memory, len(tokens)) if state is None else state
        owner = memory.owner(len(tokens))
        moved, emitted = tokens != self.bos, (tokens != self.bos) & (tokens != self.blank)
        frame = state["frame"][:, None] + moved.cumsum(1)  # (rows, U)
        total = (memory.offset + memory.lengths)[owner, None]
        states = memory.states if memory.states.shape[1] else memory.states.new_zeros(memory.rows, 1, self.memory_size)
        read = states[owner[:, None], (frame - memory.offset).clamp(0, states.shape[1] - 1)]  # (rows, U, D)
        last = last_marked(tokens, emitted, state["last"])
        known = [read, self.dropout(self.embedding(last)), emitted[:, :, None].to(read.dtype)]
        hidden, layers = self.stack.run(Padded(torch.cat(known, dim=-1), inputs.lengths), state["layers"])
        status = torch.where(frame < total, AT_STATE, PAST_END if memory.closed else WAITING)[:, :, None]
        after = {"frame": value_at_end(frame, inputs.lengths, state["frame"]), "layers": layers}
        after["last"] = value_at_end(last, inputs.lengths, state["last"])
        return Output(torch.cat([self.dropout(hidden), status.to(hidden.dtype)], dim=-1), self.project, after)

    def project(self, hidden: Tensor) -> Tensor:
        """Log-probabilities.  (..., hidden_size) -> (..., V)"""
        status, logit = hidden[..., -1:], self.emission_logit(hidden)[..., None]
        scores = self.token_log_probs(hidden) + functional.logsigmoid(logit)
        vocabulary = torch.arange(scores.shape[-1], device=scores.device)
        scores = torch.where(vocabulary == self.blank, functional.logsigmoid(-logit), scores)
        end = torch.where(vocabulary == self.eos, 0.0, float("-inf"))
        return torch.where(status == AT_STATE, scores, torch.where(status == PAST_END, end, float("-inf")))

    def emission_logit(self, hidden: Tensor) -> Tensor:
        """The logit of writing a token.  (..., hidden_size) -> (...)"""
        return self.coin(hidden[..., :-1])[..., 0]

    def token_log_probs(self, hidden: Tensor) -> Tensor:
        """Log-probabilities of the token, given that one is written.  (..., hidden_size) -> (..., V)"""
        logits = self.output(hidden[..., :-1])
        vocabulary = torch.arange(logits.shape[-1], device=logits.device)
        never = (vocabulary == self.bos) | (vocabulary == self.eos) | (vocabulary == self.blank)
        return logits.masked_fill(never, float("-inf")).log_softmax(-1)

    @torch.no_grad()
    def emission_path(self, memory: Memory, targets: Padded, *, draw: bool = False) -> EmissionPath:
        """The states at which the tokens of each target are written: drawn, or the likelier choice at each state.

        Once as many tokens as states are left, each state writes one; once no token is left, none does.
        """
        memory = memory.select(memory.owner(len(targets.lengths)))
        wanted, states = targets.lengths - 1, memory.lengths
        possible = wanted <= states
        wanted = torch.where(possible, wanted, 0)
        state, token = self.start(memory), torch.full_like(wanted, self.bos)
        count, tokens, choices = torch.zeros_like(wanted), [token], []
        for frame in range(memory.states.shape[1]):
            scores, state = self.step(token, state, memory)
            p_blank = scores[:, self.blank].exp()
            emits = (torch.rand_like(p_blank) if draw else torch.full_like(p_blank, 0.5)) >= p_blank
            left, room = wanted - count, states - frame
            choices.append((left > 0) & (left < room))
            emits = torch.where(choices[-1], emits, (left > 0) & (room > 0))
            next_token = targets.values.gather(1, count[:, None])[:, 0]
            token = torch.where(emits, next_token, self.blank)
            count = count + emits
            tokens.append(token)
        lengths = states + 1
        inputs = torch.stack(tokens, dim=1)  # (rows, T + 1)
        before_end = positions_below(states, inputs.shape[1])
        following = torch.where(before_end, torch.cat([inputs[:, 1:], inputs[:, :1]], dim=1), self.eos)
        free = torch.stack([*choices, torch.zeros_like(possible)], dim=1)
        return EmissionPath(Padded(inputs, lengths), Padded(following, lengths), free, possible)

    def log_prob(self, memory: Memory, inputs: Padded, targets: Padded) -> Tensor:
        """Of the path of likelier choices: a lower bound of the log-probability of all paths together."""
        path = self.emission_path(memory, targets)
        total = super().log_prob(memory, path.inputs, path.targets)
        return total.masked_fill(~path.possible, float("-inf"))


def last_marked(tokens: Tensor, marked: Tensor, before: Tensor) -> Tensor:
    """The last marked token up to each position, `before` where there is none.  (rows, U), (rows,) -> (rows, U)"""
    positions = torch.arange(tokens.shape[1], device=tokens.device)
    position = torch.where(marked, positions, -1).cummax(1).values
    return torch.where(position >= 0, tokens.gather(1, position.clamp(min=0)), before[:, None])


def value_at_end(values: Tensor, lengths: Tensor, before: Tensor) -> Tensor:
    """The value at each row's last position, `before` for empty rows.  (rows, U) -> (rows,)"""
    return torch.where(lengths > 0, values.gather(1, (lengths - 1).clamp(min=0)[:, None])[:, 0], before)
