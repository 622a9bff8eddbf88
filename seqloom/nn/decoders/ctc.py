"""Connectionist temporal classification: each state says one token or blank, whatever the others say.

Graves et al. 2006. An output is what is left of the states' tokens when repeats become one and blanks go. Its
probability is that of all that leave it, by torch's loss. Tokens at different states are independent.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from seqloom.contracts import Online
from seqloom.nn.ops.dropout import Dropout
from seqloom.nn.ops.frames import at_frame, closing
from seqloom.types import Memory, Padded, State, positions_below

LOWEST = -1e30  # as good as -inf, of which torch's loss makes a gradient that is no number


class CTC(Online):
    """State: {"frame": (rows,), "last": (rows,) the last token written, "mixture": {"ends": (rows,)}}.

    A step tells outputs apart, not paths: is_blank is all that leaves the output as it is, a blank or its last token
    again, and the same token as a new one can only follow a blank. "ends" is how much of an output's probability is
    that of paths which end in its last token, not in a blank.
    """

    advances = "all"
    eos: int
    trained_by = "marginal"

    def __init__(
        self,
        *,
        vocabulary: int,
        memory_size: int,
        bos: int,
        eos: int,
        blank: int,
        dropout: float = 0.0,
        length_ratio: float = 1.0,
        length_offset: int = 1,
    ):
        super().__init__(
            bos=bos,
            eos=eos,
            blank=blank,
            length_ratio=length_ratio,
            length_offset=length_offset,
            memory_size=memory_size,
        )
        self.excluded = (bos, eos)
        self.hidden_size = vocabulary
        self.dropout = Dropout(dropout)
        self.output = nn.Linear(memory_size, vocabulary)

    def prepare(self, memory: Memory) -> Memory:
        logits = self.output(self.dropout(memory.states))
        logits = logits.index_fill(2, torch.tensor(self.excluded, device=logits.device), float("-inf"))
        log_probs = logits.log_softmax(-1, dtype=torch.promote_types(logits.dtype, torch.float32))
        return memory.with_extra(log_probs=log_probs)  # (B, T, V)

    def start(self, memory: Memory) -> State:
        return {
            "frame": torch.full_like(memory.lengths, memory.offset),
            "last": torch.full_like(memory.lengths, self.bos),
            "mixture": {"ends": self.output.weight.new_zeros(memory.rows)},
        }

    def step(self, token: Tensor, state: State, memory: Memory) -> tuple[Tensor, State]:
        first, is_blank = token == self.bos, token == self.blank
        before, repeat, stay = self.frame_scores(state, memory)
        ends = torch.where(is_blank, (repeat - stay).exp(), (~first).to(before.dtype))
        last = torch.where(is_blank, state["last"], token)
        state = {"frame": state["frame"] + ~first, "last": last, "mixture": {"ends": ends}}
        scores, repeat, stay = self.frame_scores(state, memory)
        again = scores.gather(1, last[:, None]) + torch.log1p(-ends)[:, None]
        scores = scores.scatter(1, last[:, None], again)
        scores[:, self.blank] = stay
        return closing(scores, state["frame"], memory, self.eos), state

    def frame_scores(self, state: State, memory: Memory) -> tuple[Tensor, Tensor, Tensor]:
        """What is said where a row stands, the last token again, and that or a blank.  (rows, V), (rows,), (rows,)"""
        log_probs = at_frame(memory.extra["log_probs"], state["frame"], memory)
        repeat = log_probs.gather(1, state["last"][:, None])[:, 0] + state["mixture"]["ends"].log()
        return log_probs, repeat, torch.logaddexp(log_probs[:, self.blank], repeat)

    def log_prob(self, memory: Memory, inputs: Padded, targets: Padded) -> Tensor:
        """An output has -inf, without a gradient, if it and a blank between equal tokens need more states."""
        owner = memory.owner(len(targets.lengths))
        frames, labels = memory.lengths[owner], targets.lengths - 1
        log_probs = memory.extra["log_probs"][owner].clamp_min(LOWEST).transpose(0, 1)  # (T, rows, V)
        values = targets.values[:, :-1]
        between = positions_below(labels, values.shape[1])[:, 1:]
        repeats = ((values[:, 1:] == values[:, :-1]) & between).sum(1)
        loss = functional.ctc_loss(
            log_probs, values, frames, labels, blank=self.blank, reduction="none", zero_infinity=True
        )
        return -loss.masked_fill(labels + repeats > frames, float("inf"))
