"""Sampling: outputs drawn from the model rather than the likeliest ones.

temperature, top_k (Fan, Lewis & Dauphin 2018), top_p (Holtzman et al. 2020), and lecture 002's mixture of
argmax and sampling: with argmax_every = n each n-th symbol is the likeliest one, which helps spelling.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from seqloom.contracts import Constraint, Decoder, Search
from seqloom.errors import SeqloomError
from seqloom.search.constraints import Constraints
from seqloom.search.opening import Opening, prefixes, steps_between_questions
from seqloom.types import Hypothesis, Memory, Padded, State


@dataclass(frozen=True)
class Draw:
    """Rows that grow a symbol at a time, n a source."""

    tokens: Tensor  # (rows,)
    state: State
    constraints: Constraints
    ended: Tensor  # (rows,)
    failed: Tensor  # (rows,): the constraints left nothing to draw
    prefix: Padded | None
    drawn: tuple[Tensor, ...] = ()  # each (rows,)
    log_probs: tuple[Tensor, ...] = ()
    live: tuple[Tensor, ...] = ()


class Sampling(Search):
    """n_best outputs a source, drawn independently. Log-probabilities and scores are the model's own."""

    def __init__(
        self,
        *,
        n_best: int = 1,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        argmax_every: int = 0,
        minimum_length: int = 0,
        maximum_length: int | None = None,
        no_repeat: int = 0,
        seed: int | None = None,
    ):
        if temperature <= 0:
            raise ValueError(
                f"temperature = {temperature} must be above 0; for the likeliest symbol set argmax_every = 1"
            )
        if n_best < 1 or top_k < 0 or argmax_every < 0:
            raise ValueError(
                f"n_best = {n_best} must be at least 1, top_k = {top_k} and argmax_every = {argmax_every} at least 0"
            )
        if not 0 < top_p <= 1:
            raise ValueError(f"top_p = {top_p} must be in (0, 1]")
        self.n_best, self.temperature, self.top_k, self.top_p = n_best, temperature, top_k, top_p
        self.argmax_every, self.seed = argmax_every, seed
        self.opening = Opening(minimum_length, maximum_length, no_repeat)

    def start(
        self,
        decoder: Decoder,
        memory: Memory,
        prefix: Padded | None = None,
        constraints: Sequence[Constraint] = (),
    ) -> Draw:
        tokens, state, begun = self.opening.rows(self.n_best, decoder, memory, prefix, constraints)
        nobody = torch.zeros_like(tokens, dtype=torch.bool)
        return Draw(tokens, state, begun, nobody, nobody, prefix)

    def advance(self, decoder: Decoder, memory: Memory, beam: Draw) -> Draw:
        generator = None
        if self.seed is not None:
            generator = torch.Generator(device=beam.tokens.device).manual_seed(self.seed)
        every = steps_between_questions(beam.tokens)
        while len(beam.drawn) % every or not bool(beam.ended.all()):
            beam = self.step(decoder, memory, beam, generator)
        return beam

    def step(self, decoder: Decoder, memory: Memory, draw: Draw, generator: torch.Generator | None) -> Draw:
        """One more symbol for each row; a row that has ended gets one too, and nobody reads it."""
        logits, state = decoder.step(draw.tokens, draw.state, memory)
        log_probs = torch.log_softmax(logits, dim=-1)  # (rows, V)
        allowed, constraints = draw.constraints.step(draw.tokens, log_probs.shape[-1])
        scores = constraints.apply(log_probs, allowed)
        impossible = (scores == float("-inf")).all(dim=-1)
        scores = torch.where(impossible[:, None], log_probs, scores)  # such a row ends now, and is no output
        if self.argmax_every and (len(draw.drawn) + 1) % self.argmax_every == 0:
            tokens = scores.argmax(dim=-1)
        else:
            tokens = self.draw(scores, generator)
        ended = constraints.last if decoder.eos is None else tokens == decoder.eos
        return replace(
            draw,
            tokens=tokens,
            state=state,
            constraints=constraints,
            ended=draw.ended | ended | impossible,
            failed=draw.failed | (impossible & ~draw.ended),
            drawn=(*draw.drawn, tokens),
            log_probs=(*draw.log_probs, log_probs.gather(1, tokens[:, None])[:, 0]),
            live=(*draw.live, ~draw.ended),
        )

    def finish(self, decoder: Decoder, memory: Memory, beam: Draw) -> list[list[Hypothesis]]:
        """n_best outputs a source, likeliest first; fewer where the constraints left nothing to draw."""
        tokens, log_probs, live = (torch.stack(part, dim=1).cpu() for part in (beam.drawn, beam.log_probs, beam.live))
        forced = prefixes(beam.prefix, memory.rows)
        found: list[list[Hypothesis]] = [[] for _ in range(memory.rows)]
        for row, entry in enumerate(memory.owner(len(tokens)).tolist()):
            if beam.failed[row]:
                continue
            drawn = tokens[row][live[row]].tolist()
            probabilities = log_probs[row][live[row]].tolist()
            body = [token for token in drawn if token != decoder.eos]
            found[entry].append(Hypothesis(forced[entry] + body, sum(probabilities), probabilities))
        return [sorted(each, key=lambda one: -one.score) for each in found]

    def draw(self, scores: Tensor, generator: torch.Generator | None) -> Tensor:
        """(rows, V) -> (rows,)"""
        try:
            return torch.multinomial(self.filtered(scores), 1, generator=generator)[:, 0]
        except RuntimeError as error:
            raise SeqloomError(
                f"cannot draw from the model's scores, its training may have diverged: {error}"
            ) from None

    def filtered(self, scores: Tensor) -> Tensor:
        """Probabilities to draw from.  (rows, V) -> (rows, V)"""
        scores = scores / self.temperature
        if self.top_k:
            smallest = scores.topk(min(self.top_k, scores.shape[-1]), dim=-1).values[:, -1:]
            scores = scores.masked_fill(scores < smallest, float("-inf"))
        if self.top_p < 1:
            ordered, places = scores.sort(dim=-1, descending=True)
            probabilities = ordered.softmax(dim=-1)
            beyond = probabilities.cumsum(dim=-1) - probabilities >= self.top_p  # the likeliest always stays
            scores = scores.masked_fill(beyond.scatter(1, places, beyond), float("-inf"))
        return scores.softmax(dim=-1)
