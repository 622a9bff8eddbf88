"""Segment-to-segment neural transduction: at each state of the source, write or shift to the next.

Yu, Buys & Blunsom 2016. After j tokens, at state i, a token is written with probability e(i, j):
    e(i, j) = sigmoid(v . tanh(W_h h_i + W_s s_j + b) + c)
    p(y | i, j) = softmax(V_h h_i + V_s s_j + d)
    P = alpha(J, I), the sum over all alignments that never go back and write EOS at the last state
As published, some probability mass is lost: that of EOS before the last state, and of a shift at the last one.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from seqloom.contracts import Cell
from seqloom.nn.cells.lstm import LSTM
from seqloom.nn.decoders.lattice_decoder import LatticeDecoder
from seqloom.nn.layers.prediction import PredictionNetwork
from seqloom.nn.ops.frames import at_frame, frames_left, mask_after_last_frame
from seqloom.nn.ops.lattice import factored_token_log_probs
from seqloom.types import Memory, Padded, State


class SSNT(LatticeDecoder):
    """Memory: "keys" and "encoded", the terms of h_i in e and in p.

    It must know which state is the last: in a memory that is not closed, it waits at the last one so far.
    """

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
        hidden: int = 256,
        dropout: float = 0.0,
        length_ratio: float = 2.0,
        length_offset: int = 10,
    ):
        super().__init__(bos=bos, eos=eos, blank=blank, lengths=(length_ratio, length_offset), memory_size=memory_size)
        self.excluded = (bos, blank)
        self.hidden_size = vocabulary
        self.prediction = PredictionNetwork(
            vocabulary=vocabulary,
            embedding_size=embedding_size,
            size=size,
            layers=layers,
            cell=cell,
            dropout=dropout,
        )
        self.key = nn.Linear(memory_size, hidden)
        self.query = nn.Linear(size, hidden, bias=False)
        self.energy = nn.Linear(hidden, 1)
        self.read = nn.Linear(memory_size, vocabulary)
        self.wrote = nn.Linear(size, vocabulary, bias=False)

    def prepare(self, memory: Memory) -> Memory:
        return memory.with_extra(keys=self.key(memory.states), encoded=self.read(memory.states))

    def step(self, token: Tensor, state: State, memory: Memory) -> tuple[Tensor, State]:
        is_blank = token == self.blank
        frame = state["frame"] + is_blank
        prediction = self.prediction.step(token, is_blank, state["prediction"])
        written = prediction["written"]
        energy = self.energy(torch.tanh(at_frame(memory.extra["keys"], frame, memory) + self.query(written)))
        logits = at_frame(memory.extra["encoded"], frame, memory) + self.wrote(written)  # (rows, V)
        logits[:, self.excluded] = float("-inf")
        scores = logits.log_softmax(-1) + functional.logsigmoid(energy)
        shift = functional.logsigmoid(-energy)[:, 0]
        is_last = frames_left(frame, memory) == 1
        scores[:, self.blank] = shift.masked_fill(is_last, float("-inf"))
        scores[:, self.eos] = scores[:, self.eos].masked_fill(~is_last, float("-inf"))
        if not memory.closed:
            scores = scores.masked_fill(is_last[:, None], float("-inf"))
        return mask_after_last_frame(scores, frame, memory, self.eos), {"frame": frame, "prediction": prediction}

    def lattice(self, memory: Memory, inputs: Padded, targets: Padded) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Log-probabilities of shifts, labels and EOS at the last state; numbers of states and labels."""
        owner = memory.owner(len(targets.lengths))
        frames, labels = memory.lengths[owner], targets.lengths - 1
        keys, encoded = memory.extra["keys"][owner], memory.extra["encoded"][owner]
        written = self.prediction(inputs)  # (rows, U + 1, size)
        shift, emit = self.step_log_probs(keys, encoded, self.query(written), self.wrote(written), targets.values)
        last = emit[torch.arange(len(labels), device=labels.device), frames - 1, labels]
        return shift, emit[:, :, :-1], last, frames, labels

    def step_log_probs(
        self, keys: Tensor, encoded: Tensor, queries: Tensor, wrote: Tensor, targets: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Log-probabilities of a shift and of the next target, at each state after each token.  (rows, T, U + 1)"""
        energy = self.energy(torch.tanh(keys[:, :, None] + queries[:, None]))[:, :, :, 0]
        energy = energy.to(torch.promote_types(energy.dtype, torch.float32))
        (label,) = factored_token_log_probs(encoded, wrote, targets[None], self.excluded)
        return functional.logsigmoid(-energy), functional.logsigmoid(energy) + label
