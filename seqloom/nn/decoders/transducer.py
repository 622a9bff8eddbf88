"""Sequence transducer, RNN-T: at each input it writes tokens until a blank advances to the next.

Graves 2012. The scores at input t after u tokens join the encoder state h_t and the prediction network's state g_u:
    joint="add"   W h_t + V g_u                      the logits of both networks added, eq. 12; lecture 000
    joint="mlp"   W tanh(W_h h_t + W_g g_u + b)      Graves, Mohamed & Hinton 2013
The probability of an output is the sum over all its alignments (`ops/lattice.py`), each of which ends with a blank.
"""

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn

from seqloom.contracts import Cell
from seqloom.nn.cells.lstm import LSTM
from seqloom.nn.decoders.lattice_decoder import LatticeDecoder
from seqloom.nn.layers.prediction import PredictionNetwork
from seqloom.nn.ops.frames import at_frame, mask_after_last_frame
from seqloom.nn.ops.lattice import factored_token_log_probs, token_log_probs
from seqloom.types import Memory, Padded, State


class Transducer(LatticeDecoder):
    """Memory: "encoded", the term of h_t in the scores."""

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
        joint: Literal["add", "mlp"] = "add",
        hidden: int = 256,
        dropout: float = 0.0,
        length_ratio: float = 2.0,
        length_offset: int = 10,
    ):
        super().__init__(bos=bos, eos=eos, blank=blank, lengths=(length_ratio, length_offset), memory_size=memory_size)
        self.excluded = (bos, eos)
        self.hidden_size = vocabulary
        self.prediction = PredictionNetwork(
            vocabulary=vocabulary,
            embedding_size=embedding_size,
            size=size,
            layers=layers,
            cell=cell,
            dropout=dropout,
        )
        width = vocabulary if joint == "add" else hidden
        self.read = nn.Linear(memory_size, width)
        self.wrote = nn.Linear(size, width, bias=False)
        self.output = nn.Linear(hidden, vocabulary) if joint == "mlp" else None

    def prepare(self, memory: Memory) -> Memory:
        return memory.with_extra(encoded=self.read(memory.states))  # (B, T, V or hidden)

    def step(self, token: Tensor, state: State, memory: Memory) -> tuple[Tensor, State]:
        is_blank = token == self.blank
        frame = state["frame"] + is_blank
        prediction = self.prediction.step(token, is_blank, state["prediction"])
        joined = at_frame(memory.extra["encoded"], frame, memory) + self.wrote(prediction["written"])
        logits = joined if self.output is None else self.output(joined.tanh())  # (rows, V)
        logits[:, self.excluded] = float("-inf")
        scores = mask_after_last_frame(logits.log_softmax(-1), frame, memory, self.eos)
        return scores, {"frame": frame, "prediction": prediction}

    def lattice(self, memory: Memory, inputs: Padded, targets: Padded) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Log-probabilities of blanks, labels and the last blank; numbers of inputs and labels."""
        owner = memory.owner(len(targets.lengths))
        frames, labels = memory.lengths[owner], targets.lengths - 1
        encoded, written = memory.extra["encoded"][owner], self.wrote(self.prediction(inputs))
        tokens = torch.stack([torch.full_like(targets.values, self.blank), targets.values])  # (2, rows, U + 1)
        if self.output is None:
            log_probs = factored_token_log_probs(encoded, written, tokens, self.excluded)
        else:
            hidden = torch.tanh(encoded[:, :, None] + written[:, None])  # (rows, T, U + 1, hidden)
            log_probs = token_log_probs(self.output(hidden), tokens, self.excluded)
        blank, label = log_probs  # (rows, T, U + 1)
        last = blank[torch.arange(len(labels), device=labels.device), frames - 1, labels]
        return blank, label[:, :, :-1], last, frames, labels
