"""Connectionist temporal classification: each state emits a token or a blank, independently of the others.

Graves et al. 2006. An output is the sequence of emitted tokens with repeats merged and blanks removed; its probability
is the sum over all sequences that give it, computed by torch's CTC loss.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from seqloom.contracts import Online
from seqloom.nn.ops.dropout import Dropout
from seqloom.nn.ops.frames import at_frame, mask_after_last_frame
from seqloom.types import Memory, Padded, State, positions_below

LOWEST = -1e30  # in place of -inf, for which torch's CTC loss has NaN gradients


class CTC(Online):
    """State: {"frame": (rows,), "last": (rows,) the last token written, "mixture": {"ends": (rows,)}}.

    A step scores outputs, not paths: the blank stands for everything that leaves the output unchanged, a blank or its
    last token repeated, and a second equal token can only follow a blank. "ends" is the share of an output's
    probability that belongs to paths ending in its last token rather than in a blank.
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
        super().__init__(bos=bos, eos=eos, blank=blank, lengths=(length_ratio, length_offset), memory_size=memory_size)
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
        return mask_after_last_frame(scores, state["frame"], memory, self.eos), state

    def frame_scores(self, state: State, memory: Memory) -> tuple[Tensor, Tensor, Tensor]:
        """Log-probabilities at the frame: of each token (rows, V), a repeat (rows,), a repeat or blank (rows,)."""
        log_probs = at_frame(memory.extra["log_probs"], state["frame"], memory)
        repeat = log_probs.gather(1, state["last"][:, None])[:, 0] + state["mixture"]["ends"].log()
        return log_probs, repeat, torch.logaddexp(log_probs[:, self.blank], repeat)

    def log_prob(self, memory: Memory, inputs: Padded, targets: Padded) -> Tensor:
        """-inf, without a gradient, for outputs too long for the source; equal tokens need a blank between them."""
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
