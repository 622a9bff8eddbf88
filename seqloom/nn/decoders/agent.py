"""Simultaneous translation by an agent: at each step it reads one more input, or writes its translator's next token.

Cho & Esipova 2016; Gu, Neubig, Cho & Li 2017. The translator is an ordinary decoder that attends to what has been read
so far. It is trained beforehand, on whole sources or by `wait_k`, and stays fixed: `init` loads it from a run. A small
network, the policy, computes the probability w of writing from the translator's hidden vector:

    READ   1 - w + w p(EOS)        token k   w p(k)        while there is more to read
    READ   p(EOS)                  token k   p(k)          at the last input, where to read on is to end

Where the translator would end before the source does, the agent reads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from seqloom.contracts import Decoder, Online
from seqloom.errors import SeqloomError
from seqloom.nn.attention.additive import Additive
from seqloom.nn.decoders.recurrent import Recurrent
from seqloom.nn.layers.prefix import prefix_memory
from seqloom.nn.ops.frames import frames_left, mask_after_last_frame
from seqloom.types import Memory, Padded, State, hold

TRANSLATOR = partial(Recurrent, attention=Additive, bridge="zero")
EXTRA_FEATURES = 3  # beside the translator's hidden vector: p(best token), p(EOS) and the lag
LAG_SCALE = 4  # the lag is divided by this, so that it is about as large as the other features


@dataclass(frozen=True)
class Observation:
    """What the agent sees before it decides."""

    features: Tensor  # (rows, hidden_size)
    log_probs: Tensor  # (rows, V): the translator's, of the next token
    end: Tensor  # (rows,): log p(EOS)
    all_read: Tensor  # (rows,): whether the whole source has been read
    state: State


class Agent(Online):
    """State: {"frame", "written", "token": the last one, "before" and "after" it: the translator's states}.

    It has read `frame` + 1 states. Whether that was the last is known when the next one arrives or the memory closes.
    """

    eos: int
    trained_by = "read_write"

    def __init__(
        self,
        *,
        vocabulary: int,
        memory_size: int,
        bos: int,
        eos: int,
        blank: int,
        translator: Callable[..., Decoder] = TRANSLATOR,
        size: int = 64,
        length_ratio: float = 2.0,
        length_offset: int = 10,
    ):
        super().__init__(bos=bos, eos=eos, blank=blank, lengths=(length_ratio, length_offset), memory_size=memory_size)
        self.translator = translator(vocabulary=vocabulary, memory_size=memory_size, bos=bos, eos=eos)
        if self.translator.online:
            raise ValueError(
                "translator must be a decoder that reads the whole source first: the agent decides when to write"
            )
        self.hidden_size = self.translator.hidden_size + EXTRA_FEATURES
        self.policy = nn.Sequential(nn.Linear(self.hidden_size, size), nn.Tanh(), nn.Linear(size, 1))

    def prepare(self, memory: Memory) -> Memory:
        return self.translator.prepare(memory)

    def start(self, memory: Memory) -> State:
        none = torch.zeros_like(memory.lengths)
        own = self.translator.start(prefix_memory(memory, none + 1))
        return {"frame": none, "written": none, "token": none + self.bos, "before": own, "after": own}

    def step(self, token: Tensor, state: State, memory: Memory) -> tuple[Tensor, State]:
        seen = self.observe(token, state, memory)
        reads, writes = self.policy_log_probs(seen.features, seen.end)
        reads = torch.where(seen.all_read, seen.end, reads)
        writes = torch.where(seen.all_read, 0.0, writes)
        vocabulary = torch.arange(seen.log_probs.shape[1], device=token.device)
        is_eos, is_blank = vocabulary.eq(self.eos), vocabulary.eq(self.blank)  # (V,)
        scores = (seen.log_probs + writes[:, None]).masked_fill(is_eos, float("-inf"))
        scores = torch.where(is_blank, reads[:, None], scores)
        scores = mask_after_last_frame(scores, seen.state["frame"], memory, self.eos)
        return scores.masked_fill((seen.all_read & (not memory.closed))[:, None], float("-inf")), seen.state

    def observe(self, token: Tensor, state: State, memory: Memory) -> Observation:
        """The observation after a token: the blank has read one more state, any other token has been written."""
        read = token == self.blank
        frame = state["frame"] + read
        written = state["written"] + (~read & (token != self.bos))
        before = hold(read, state["after"], state["before"])
        token = torch.where(read, state["token"], token)
        part = prefix_memory(memory, frame + 1)
        if not bool(written.all()):  # until its first token, the translator restarts from all that has been read
            before = hold(written > 0, self.translator.start_rows(part, len(token)), before)
        output = self.translator(part, Padded(token[:, None], torch.ones_like(token)), before)
        never = torch.tensor([self.bos, *self.blanks], device=token.device)
        log_probs = output.scores[:, 0].index_fill(1, never, float("-inf")).log_softmax(-1)
        end, lag = log_probs[:, self.eos], (frame + 1 - written) / LAG_SCALE
        extra = torch.stack([log_probs.amax(1).exp(), end.exp(), lag.to(end.dtype)], dim=1)
        features = torch.cat([output.hidden[:, 0], extra], dim=1)
        all_read = frames_left(frame, memory) <= 1
        after = {"frame": frame, "written": written, "token": token, "before": before, "after": output.state}
        return Observation(features, log_probs, end, all_read, after)

    def policy_log_probs(self, features: Tensor, end: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probabilities of reading, and of w, while there is more to read.  (..., D), (...) -> twice (...)"""
        logit = self.policy(features)[..., 0]
        writes = functional.logsigmoid(logit)
        return torch.logaddexp(functional.logsigmoid(-logit), writes + end), writes

    def log_prob(self, memory: Memory, inputs: Padded, targets: Padded) -> Tensor:
        raise SeqloomError(
            "an agent writes an output in too many ways to add up: use `evaluate`, or score its translator's run"
        )

    def first_needed(self, state: State) -> int:
        return self.translator.first_needed(state["before"])
