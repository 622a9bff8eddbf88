"""Pointer sentinel mixture model: a language model that may also repeat one of the last L tokens it has read.

Merity, Xiong, Bradbury & Socher 2016, section 2: with h_i the inner decoder's hidden vector after token w_i,
    q = tanh(W h + b)        [a; g] = softmax([q . h_1; ..; q . h_L; q . s])
    p(w) = g p_vocabulary(w) + sum of a_i over the i with w_i = w
The sentinel s is learned; its share g of the pointer's attention goes to the vocabulary.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from seqloom.contracts import Decoder
from seqloom.nn.decoders.inner import OuterDecoder, inner_decoder
from seqloom.nn.decoders.recurrent import Recurrent
from seqloom.nn.decoders.stepping import step_by_forward
from seqloom.nn.ops.pointing import add_pointer_probs
from seqloom.types import Memory, Output, Padded, State


class Sentinel(OuterDecoder):
    """State: {"decoder": the inner decoder's, "keys": (rows, L, D), "symbols": tokens (rows, L), "count": (rows,)}.

    The last `count` of the L are real. A mixture of tokens is stored as its largest component.
    """

    scores = "log_probs"

    def __init__(
        self,
        *,
        vocabulary: int,
        memory_size: int,
        bos: int,
        eos: int | None,
        decoder: Callable[..., Decoder] = Recurrent,
        window: int = 100,
        length_ratio: float = 2.0,
        length_offset: int = 10,
    ):
        super().__init__(bos=bos, eos=eos, lengths=(length_ratio, length_offset))
        if window < 1:
            raise ValueError(f"window = {window} must be 1 or more")
        self.decoder = inner_decoder(decoder, vocabulary=vocabulary, memory_size=memory_size, bos=bos, eos=eos)
        self.window, self.hidden_size = window, self.decoder.hidden_size
        self.query = nn.Linear(self.hidden_size, self.hidden_size)
        self.sentinel = nn.Parameter(torch.randn(self.hidden_size) * self.hidden_size**-0.5)

    def start(self, memory: Memory) -> State:
        weight = self.query.weight
        return {
            "decoder": self.decoder.start(memory),
            "keys": weight.new_zeros(memory.rows, self.window, self.hidden_size),
            "symbols": torch.zeros(memory.rows, self.window, dtype=torch.long, device=weight.device),
            "count": torch.zeros(memory.rows, dtype=torch.long, device=weight.device),
        }

    def step(self, token: Tensor, state: State, memory: Memory) -> tuple[Tensor, State]:
        return step_by_forward(self, token, state, memory)

    def forward(self, memory: Memory, inputs: Padded, state: State | None = None, attention: bool = False) -> Output:
        if state is None:
            state = self.start_rows(memory, inputs.values.shape[0])
        output: Output = self.decoder(memory, inputs, state["decoder"], attention)
        read = inputs.values.argmax(-1) if inputs.values.is_floating_point() else inputs.values
        keys = torch.cat([state["keys"], output.hidden], dim=1)  # (rows, L + U, D)
        tokens = torch.cat([state["symbols"], read], dim=1)  # (rows, L + U)
        scores, sentinel = self.mixture_log_probs(output, keys, tokens, state["count"])
        last = inputs.lengths[:, None] + torch.arange(self.window, device=read.device)  # (rows, L)
        after = {
            "decoder": output.state,
            "keys": keys.gather(1, last[:, :, None].expand(-1, -1, keys.shape[2])),
            "symbols": tokens.gather(1, last),
            "count": (state["count"] + inputs.lengths).clamp(max=self.window),
        }
        copied = -torch.expm1(sentinel) if attention else None
        return Output(output.hidden, lambda hidden: hidden, after, output.attention, ready=scores, copied=copied)

    def mixture_log_probs(self, output: Output, keys: Tensor, tokens: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
        """(rows, L + U, D), (rows, L + U), (rows,) -> log-probabilities (rows, U, V), and of the sentinel (rows, U)"""
        query = torch.tanh(self.query(output.hidden))  # (rows, U, D)
        visible = self.in_window(query.shape[1], count)
        energies = (query @ keys.transpose(1, 2)).masked_fill(~visible, float("-inf"))
        energies = torch.cat([energies, (query @ self.sentinel)[:, :, None]], dim=-1).log_softmax(-1)
        same = tokens[:, :, None] == tokens[:, None]  # (rows, L + U, L + U)
        shares = energies[:, :, :-1].exp() @ same.to(query.dtype)  # (rows, U, L + U)
        log_probs = energies[:, :, -1:] + output.project(output.hidden).log_softmax(-1)
        known = visible & self.last_occurrence(same, visible)
        return add_pointer_probs(log_probs, shares, tokens[:, None].expand_as(shares), known), energies[:, :, -1]

    def in_window(self, steps: int, count: Tensor) -> Tensor:
        """Which positions each step may repeat: the last L, up to its own input.  (rows, U, L + U)"""
        positions = torch.arange(self.window + steps, device=count.device)
        own = self.window + torch.arange(steps, device=count.device)[:, None]
        return (positions <= own) & (positions > own - self.window) & (positions >= self.window - count[:, None, None])

    @staticmethod
    def last_occurrence(same: Tensor, visible: Tensor) -> Tensor:
        """Whether each position is the last occurrence of its token within a step's window.  (rows, U, L + U)"""
        width = same.shape[1]
        positions = torch.arange(width, device=same.device)
        following = torch.where(same & (positions > positions[:, None]), positions, width).amin(-1)  # (rows, L + U)
        own = width - visible.shape[1] + torch.arange(visible.shape[1], device=same.device)[:, None]
        return following[:, None] > own

    def states_read(self, state: State, memory: Memory) -> Tensor | None:
        return self.decoder.states_read(state["decoder"], memory)

    def first_needed(self, state: State) -> int:
        return self.decoder.first_needed(state["decoder"])
