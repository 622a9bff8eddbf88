"""Shallow fusion: a decoder and a language model that choose every token together. A decoder of decoders.

Gulcehre et al. 2015, section 4.1: score = log p(y_t | y_<t, x) + weight * log p_LM(y_t | y_<t). Both are normalised,
their sum is not. The language model neither reads nor scores blanks, so the output of a transducer, a sum over all
its alignments, also has the score log p(y | x) + weight * log p_LM(y).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from seqloom.contracts import Decoder, Head, Stepper
from seqloom.data.special_tokens import SPECIAL, correspondence
from seqloom.errors import SeqloomError
from seqloom.types import Memory, Output, Padded, State, hold

KEY = "language_model"
LM_WEIGHT = 0.3  # the default
FIRST = len(SPECIAL)  # the first token after the special ones, which all vocabularies share


class ShallowFusion(Decoder):
    """State: the decoder's, and "language_model": its "state" and, with blanks, its last "log_probs" (rows, V).

    Each begins with its own BOS. Both have the same tokens; `tokens` maps the decoder's to the language model's where
    their order differs.
    """

    scores = "log_probs"

    tokens: Tensor | None

    def __init__(
        self, *, decoder: Decoder, language_model: Decoder, weight: float, tokens: Sequence[int] | None = None
    ):
        super().__init__()
        if not 0 <= weight <= 1000:
            raise SeqloomError(f"lm_weight = {weight}: expected a number from 0 to 1,000")
        for one in (decoder, language_model):
            if isinstance(one, Head):
                raise SeqloomError("a head outputs no sequence: it can neither be nor use a language model")
        if decoder.chooses:
            raise SeqloomError(
                "lm: a run that copies or points does not support --lm: give the language model to `rescore`"
            )
        if language_model.blanks:
            raise SeqloomError("lm: a decoder with blanks is no language model: give a run without a source")
        self.decoder, self.language_model, self.weight = decoder, language_model, weight
        self.register_buffer("tokens", None if tokens is None else torch.tensor(tokens), persistent=False)
        self.bos, self.eos, self.blanks, self.online = decoder.bos, decoder.eos, decoder.blanks, decoder.online
        self.advances, self.may_rise = decoder.advances, decoder.may_rise
        self.length_ratio, self.length_offset = decoder.length_ratio, decoder.length_offset

    def prepare(self, memory: Memory) -> Memory:
        memory = self.decoder.prepare(memory)
        empty = self.language_model.prepare(Memory.empty(memory.rows, memory.states.device))
        return replace(memory, parts={**memory.parts, KEY: empty})

    def start(self, memory: Memory) -> State:
        lm_state: State = {"state": self.language_model.start(memory.parts[KEY])}
        if self.blanks:
            first = torch.full_like(memory.lengths, self.bos)
            lm_state["log_probs"], _ = self.lm_step(first, lm_state["state"], memory)
        return {**self.decoder.start(decoder_memory(memory)), KEY: lm_state}

    def step(self, token: Tensor, state: State, memory: Memory) -> tuple[Tensor, State]:
        scores, after = self.decoder.step(token, decoder_entries(state), decoder_memory(memory))
        if self.decoder.scores == "logits":
            scores = scores.log_softmax(-1)
        ours = state[KEY]
        if not self.blanks:
            log_probs, lm_state = self.lm_step(token, ours["state"], memory)
            return self.fuse(scores, log_probs), {**after, KEY: {"state": lm_state}}
        is_blank = torch.isin(token, torch.tensor(self.blanks, device=token.device))
        if not bool(is_blank.all()):
            log_probs, lm_state = self.lm_step(token, ours["state"], memory)
            ours = hold(is_blank, {"state": lm_state, "log_probs": log_probs}, ours)
        return self.fuse(scores, ours["log_probs"]), {**after, KEY: ours}

    def lm_step(self, token: Tensor, state: State, memory: Memory) -> tuple[Tensor, State]:
        """The language model's log-probabilities after a token, and its state.  (rows, V)"""
        scores, after = self.language_model.step(self.lm_tokens(token), state, memory.parts[KEY])
        return self.lm_log_probs(scores), after

    def lm_tokens(self, tokens: Tensor) -> Tensor:
        """The language model's tokens for the decoder's."""
        theirs = tokens if self.tokens is None else self.tokens[tokens]
        return torch.where(tokens == self.bos, self.language_model.bos, theirs)

    def lm_log_probs(self, scores: Tensor) -> Tensor:
        """The language model's log-probabilities of the decoder's tokens.  (..., its V) -> (..., V)"""
        log_probs = scores.log_softmax(-1)
        return log_probs if self.tokens is None else log_probs[..., self.tokens]

    def fuse(self, scores: Tensor, log_probs: Tensor) -> Tensor:
        """The weighted sum of both; blanks keep the decoder's score.  twice (..., V) -> (..., V)"""
        if scores.shape[-1] != log_probs.shape[-1]:
            both = f"{scores.shape[-1]} and {log_probs.shape[-1]}"
            raise SeqloomError(f"decoder and language model score {both} tokens; expected one vocabulary")
        if not self.weight:  # 0 times -inf would be NaN
            return scores
        weighted = self.weight * log_probs
        weighted[..., list(self.blanks)] = 0
        return scores + weighted

    def forward(self, memory: Memory, inputs: Padded, state: State | None = None, attention: bool = False) -> Output:
        if self.blanks:
            return Stepper.__call__(self, memory, inputs, state, attention)
        before = None if state is None else decoder_entries(state)
        ours = self.decoder(decoder_memory(memory), inputs, before, attention)
        lm_inputs = Padded(self.lm_tokens(inputs.values), inputs.lengths)
        theirs = self.language_model(memory.parts[KEY], lm_inputs, None if state is None else state[KEY]["state"])
        sizes = [ours.hidden.shape[-1], theirs.hidden.shape[-1]]

        def project(hidden: Tensor) -> Tensor:
            one, other = hidden.split(sizes, dim=-1)
            scores = ours.project(one)
            scores = scores.log_softmax(-1) if self.decoder.scores == "logits" else scores
            return self.fuse(scores, self.lm_log_probs(theirs.project(other)))

        hidden = torch.cat([ours.hidden, theirs.hidden], dim=-1)
        return Output(hidden, project, {**ours.state, KEY: {"state": theirs.state}}, ours.attention)

    def log_prob(self, memory: Memory, inputs: Padded, targets: Padded) -> Tensor:
        """The score of each output in a search; not a probability.  (rows,)"""
        ours = self.decoder.log_prob(decoder_memory(memory), inputs, targets)
        lm_inputs = Padded(self.lm_tokens(inputs.values), inputs.lengths)
        log_probs = self.lm_log_probs(self.language_model(memory.parts[KEY], lm_inputs).scores)  # (rows, U, V)
        chosen = log_probs.gather(2, targets.values[:, :, None])[:, :, 0].masked_fill(~targets.mask, 0)
        return ours + self.weight * chosen.sum(1)

    def limit(self, memory: Memory) -> Tensor:
        limit: Tensor = self.decoder.limit(decoder_memory(memory))
        return limit

    def states_read(self, state: State, memory: Memory) -> Any:
        return self.decoder.states_read(decoder_entries(state), decoder_memory(memory))

    def first_needed(self, state: State) -> int:
        return self.decoder.first_needed(decoder_entries(state))


def same_tokens(ours: Any, theirs: Any) -> list[int] | None:
    """The token in `theirs` of each token of `ours`; None if one is missing, or if they tokenise differently.

    Only characters and words can be matched: pieces of words depend on how they were learned.
    """
    ways = {(getattr(each, "units", None), getattr(each, "lowercase", None)) for each in (ours, theirs)}
    if len(ways) > 1 or ways.pop()[0] not in ("char", "word"):
        return None
    found = correspondence(ours, theirs)
    return None if any(token < FIRST for token in found[FIRST:]) else found


def decoder_memory(memory: Memory) -> Memory:
    """The memory as the decoder prepared it."""
    return replace(memory, parts=decoder_entries(memory.parts))


def decoder_entries(entries: dict[str, Any]) -> dict[str, Any]:
    """The entries without the language model's."""
    return {name: entry for name, entry in entries.items() if name != KEY}
