"""A tag for each token of the source: softmax(W h_t), or a linear-chain conditional random field over all tags.

Lafferty, McCallum & Pereira 2001; on top of a recurrent network Lample et al. 2016, eq. 1. With emissions e_t = W h_t
and transitions A, p(y) is proportional to exp(sum_t A[y_t-1, y_t] + e_t(y_t)). It factorises from left to right,
    p(y_t | y_<t) = softmax over y_t of A[y_t-1, y_t] + e_t(y_t) + b_t(y_t)
    b_t(y) = log sum over y' of exp(A[y, y'] + e_t+1(y') + b_t+1(y')),  0 at the end
so that scores, losses and smoothing are those of any other decoder. With the maximum in place of the sum, the greedy
choice is the likeliest sequence (Viterbi 1967).
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from seqloom.contracts import Encoder, Head, Task
from seqloom.errors import SeqloomError
from seqloom.nn.heads.outputs import projection_of_labels
from seqloom.nn.ops.dropout import Dropout
from seqloom.types import Memory, Output, Padded, State


class Tags(Head):
    """Works on any encoder that has one state per token. `crf` adds transitions between tags."""

    per_token = True

    def __init__(self, *, vocabulary: int, memory_size: int, bos: int, crf: bool = False, dropout: float = 0.0):
        super().__init__(memory_size=memory_size, bos=bos)
        self.hidden_size = memory_size
        self.dropout = Dropout(dropout)
        self.output = nn.Linear(memory_size, vocabulary)
        self.transitions = nn.Parameter(torch.zeros(vocabulary, vocabulary)) if crf else None  # from, to

    def suit(self, task: Task, encoder: Encoder | None) -> None:
        super().suit(task, encoder)
        if encoder is not None and not encoder.one_state_per_token:
            raise ValueError(
                f"needs one encoder state per token, but this encoder makes {encoder.count_states(100)} of 100 tokens"
            )

    def forward(self, memory: Memory, inputs: Padded, state: State | None = None, attention: bool = False) -> Output:
        """Inputs are the tags before each one, BOS first; only the random field reads them."""
        owner = memory.owner(len(inputs.lengths))
        if not torch.equal(inputs.lengths, memory.lengths[owner]):
            raise SeqloomError("tags outputs one tag per source token: give a target as many tags as its source words")
        hidden = self.dropout(memory.states)  # (B, T, D)
        project = projection_of_labels(self.output)
        if self.transitions is None:
            return Output(hidden[owner], project, {})
        scores = project(hidden)  # (B, T, V)
        scores = scores + messages(scores, self.transitions, memory.lengths, lambda following: following.logsumexp(-1))
        ready = self.transitions[inputs.values] + scores[owner]  # (rows, T, V)
        return Output(hidden[owner], lambda hidden: hidden, {}, ready=ready)

    def answer(self, memory: Memory) -> Padded:
        scores: Tensor = projection_of_labels(self.output, known=True)(memory.states)  # (B, T, V)
        if self.transitions is None:
            return Padded(scores.argmax(-1), memory.lengths)
        scores = scores + messages(scores, self.transitions, memory.lengths, lambda following: following.amax(-1))
        tag, tags = torch.full_like(memory.lengths, self.bos), []
        for position in scores.unbind(1):
            tag = (self.transitions[tag] + position).argmax(-1)  # (B,)
            tags.append(tag)
        return Padded(torch.stack(tags, dim=1), memory.lengths)


def messages(scores: Tensor, transitions: Tensor, lengths: Tensor, reduce: Callable[[Tensor], Tensor]) -> Tensor:
    """For each position and tag, what all later positions add: b_t(y) above.  (B, T, V)"""
    message = torch.zeros_like(scores[:, 0])
    found = [message]
    for position in range(scores.shape[1] - 1, 0, -1):
        following = transitions + (scores[:, position] + message)[:, None]  # (B, V, V)
        message = torch.where((position < lengths)[:, None], reduce(following), 0)
        found.append(message)
    return torch.stack(found[::-1], dim=1)
