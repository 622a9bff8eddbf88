"""Sampling: outputs drawn from the model rather than the likeliest ones.

temperature, top_k (Fan, Lewis & Dauphin 2018), top_p (Holtzman et al. 2020), and lecture 002's mixture of
argmax and sampling: with argmax_every = n each n-th token is the likeliest one, which helps spelling.
One seed gives the same outputs again, but others in numpy (exported models) than in torch, and on other devices.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from seqloom import arrays
from seqloom.arrays import Array, as_numpy, descending, log_softmax, namespace, topk
from seqloom.contracts import Constraint, Search, Stepper
from seqloom.errors import SeqloomError
from seqloom.search.constraints.combined import Constraints
from seqloom.search.options import SearchOptions, prefix_tokens, steps_between_checks
from seqloom.types import Hypothesis, Memory, Padded, State


@dataclass(frozen=True)
class Draw:
    """Rows that grow a token at a time, n a source."""

    tokens: Array  # (rows,)
    state: State
    constraints: Constraints
    ended: Array  # (rows,)
    failed: Array  # (rows,): the constraints left nothing to draw
    prefix: Padded | None
    drawn: tuple[Array, ...] = ()  # each (rows,)
    log_probs: tuple[Array, ...] = ()
    live: tuple[Array, ...] = ()


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
                f"temperature = {temperature} must be above 0; for the likeliest token set argmax_every = 1"
            )
        if n_best < 1 or top_k < 0 or argmax_every < 0:
            raise ValueError(
                f"n_best = {n_best} must be at least 1, top_k = {top_k} and argmax_every = {argmax_every} at least 0"
            )
        if not 0 < top_p <= 1:
            raise ValueError(f"top_p = {top_p} must be in (0, 1]")
        self.n_best, self.temperature, self.top_k, self.top_p = n_best, temperature, top_k, top_p
        self.argmax_every, self.seed = argmax_every, seed
        self.options = SearchOptions(minimum_length, maximum_length, no_repeat)

    def start(
        self,
        decoder: Stepper,
        memory: Memory,
        prefix: Padded | None = None,
        constraints: Sequence[Constraint] = (),
    ) -> Draw:
        tokens, state, begun = self.options.start_rows(self.n_best, decoder, memory, prefix, constraints)
        xp = namespace(tokens)
        nobody = xp.zeros_like(tokens, dtype=xp.bool)
        return Draw(tokens, state, begun, nobody, nobody, prefix)

    def advance(self, decoder: Stepper, memory: Memory, beam: Draw) -> Draw:
        generator = arrays.generator(beam.tokens, self.seed)
        every = steps_between_checks(beam.tokens)
        while len(beam.drawn) % every or not bool(beam.ended.all()):
            beam = self.step(decoder, memory, beam, generator)
        return beam

    def step(self, decoder: Stepper, memory: Memory, draw: Draw, generator: Any) -> Draw:
        """One more token for each row; a row that has ended gets one too, and nobody reads it."""
        logits, state = decoder.step(draw.tokens, draw.state, memory)
        log_probs = log_softmax(logits)  # (rows, V)
        xp, constraints = namespace(log_probs), draw.constraints.step(draw.tokens)
        scores = constraints.forbid(xp.asarray(log_probs, copy=True))
        impossible = (scores == float("-inf")).all(1)
        scores = xp.where(impossible[:, None], log_probs, scores)  # such a row ends now, and is no output
        if self.argmax_every and (len(draw.drawn) + 1) % self.argmax_every == 0:
            tokens = scores.argmax(1)
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
            log_probs=(*draw.log_probs, log_probs[xp.arange(len(tokens), device=tokens.device), tokens]),
            live=(*draw.live, ~draw.ended),
        )

    def finish(self, decoder: Stepper, memory: Memory, beam: Draw) -> list[list[Hypothesis]]:
        """n_best outputs a source, likeliest first; fewer where the constraints left nothing to draw."""
        stack = namespace(beam.tokens).stack
        tokens, log_probs, live = (as_numpy(stack(part, 1)) for part in (beam.drawn, beam.log_probs, beam.live))
        failed, forced = as_numpy(beam.failed), prefix_tokens(beam.prefix, memory.rows)
        found: list[list[Hypothesis]] = [[] for _ in range(memory.rows)]
        for row, entry in enumerate(memory.owner(len(tokens)).tolist()):
            if failed[row]:
                continue
            drawn = tokens[row][live[row]].tolist()
            probabilities = log_probs[row][live[row]].tolist()
            body = [token for token in drawn if token != decoder.eos]
            found[entry].append(Hypothesis(forced[entry] + body, sum(probabilities), probabilities))
        return [sorted(each, key=lambda one: -one.score) for each in found]

    def draw(self, scores: Array, generator: Any) -> Array:
        """(rows, V) -> (rows,)"""
        try:
            return arrays.draw(self.filtered(scores), generator)
        except ValueError as error:
            raise SeqloomError(
                f"cannot draw from the model's scores, its training may have diverged: {error}"
            ) from None

    def filtered(self, scores: Array) -> Array:
        """Probabilities to draw from.  (rows, V) -> (rows, V)"""
        xp, scores = namespace(scores), scores / self.temperature
        if self.top_k:
            smallest = topk(scores, min(self.top_k, scores.shape[-1]))[0][:, -1:]
            scores = xp.where(scores < smallest, float("-inf"), scores)
        if self.top_p < 1:
            ordered = descending(scores)
            probabilities = xp.exp(log_softmax(ordered))
            before = probabilities.cumsum(1) - probabilities  # of what is likelier: the likeliest always stays
            smallest = xp.amin(xp.where(before < self.top_p, ordered, float("inf")), 1)[:, None]
            scores = xp.where(scores < smallest, float("-inf"), scores)
        return xp.exp(log_softmax(scores))
