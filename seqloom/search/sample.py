"""Sampling: outputs drawn at random from the model.

temperature, top_k (Fan, Lewis & Dauphin 2018), top_p (Holtzman et al. 2020), and a mixture of argmax and sampling:
with argmax_every = n each n-th token is the likeliest one, which helps spelling.
A seed repeats the outputs, but numpy (exported models), torch and other devices each draw their own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from seqloom import arrays
from seqloom.arrays import NEVER, Array, as_numpy, descending, log_softmax, namespace, topk
from seqloom.contracts import Constraint, Search, Stepper
from seqloom.errors import SeqloomError
from seqloom.search.constraints.combined import Constraints
from seqloom.search.options import SearchOptions, prefix_tokens, steps_between_checks
from seqloom.search.trail import Trail
from seqloom.types import Hypothesis, Memory, Padded, State
from seqloom.values import LARGEST, expect

LEAST_TEMPERATURE = 1e-3  # below it is the likeliest token, and soon a division by zero
SAMPLES = 20_000  # of one source, at most


@dataclass(frozen=True)
class Samples:
    """Rows that grow by one token per step, n per source."""

    tokens: Array  # (rows,)
    state: State
    constraints: Constraints
    ended: Array  # (rows,)
    failed: Array  # (rows,): the constraints allowed no token
    prefix: Padded | None
    sampled: Trail = field(default_factory=Trail)  # the token of each step (rows,)
    log_probs: Trail = field(default_factory=Trail)  # its log-probability (rows,)
    unfinished: Trail = field(default_factory=Trail)  # whether the row had not ended before it (rows,)


class Sampling(Search):
    """n_best outputs per source, drawn independently. Log-probabilities and scores are the model's own."""

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
        expect(LEAST_TEMPERATURE, 1 / LEAST_TEMPERATURE, temperature=temperature)
        expect(1, SAMPLES, n_best=n_best)
        expect(0, LARGEST, top_k=top_k, argmax_every=argmax_every)
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
    ) -> Samples:
        tokens, state, begun = self.options.start_rows(self.n_best, decoder, memory, prefix, constraints)
        xp = namespace(tokens)
        none = xp.zeros_like(tokens, dtype=xp.bool)
        return Samples(tokens, state, begun, none, none, prefix)

    def advance(self, decoder: Stepper, memory: Memory, beam: Samples) -> Samples:
        generator = arrays.generator(beam.tokens, self.seed)
        every = steps_between_checks(beam.tokens)
        while len(beam.sampled) % every or not bool(beam.ended.all()):
            beam = self.step(decoder, memory, beam, generator)
        return beam

    def step(self, decoder: Stepper, memory: Memory, samples: Samples, generator: Any) -> Samples:
        """One more token for each row; those of rows that have ended are ignored."""
        logits, state = decoder.step(samples.tokens, samples.state, memory)
        log_probs = log_softmax(logits)  # (rows, V)
        xp, constraints = namespace(log_probs), samples.constraints.step(samples.tokens)
        scores = constraints.forbid(xp.asarray(log_probs, copy=True))
        impossible = (scores == NEVER).all(1)
        scores = xp.where(impossible[:, None], log_probs, scores)  # such a row ends now and gives no output
        if self.argmax_every and (len(samples.sampled) + 1) % self.argmax_every == 0:
            tokens = scores.argmax(1)
        else:
            tokens = self.draw(scores, generator)
        ended = constraints.last if decoder.eos is None else tokens == decoder.eos
        return replace(
            samples,
            tokens=tokens,
            state=state,
            constraints=constraints,
            ended=samples.ended | ended | impossible,
            failed=samples.failed | (impossible & ~samples.ended),
            sampled=samples.sampled.add(tokens),
            log_probs=samples.log_probs.add(log_probs[xp.arange(len(tokens), device=tokens.device), tokens]),
            unfinished=samples.unfinished.add(~samples.ended),
        )

    def finish(self, decoder: Stepper, memory: Memory, beam: Samples) -> list[list[Hypothesis]]:
        """n_best outputs per source, likeliest first; fewer where the constraints allowed no token."""
        columns = (beam.sampled, beam.log_probs, beam.unfinished)
        tokens, log_probs, unfinished = (as_numpy(each.stack()) for each in columns)  # (rows, U)
        failed, forced = as_numpy(beam.failed), prefix_tokens(beam.prefix, memory.rows)
        found: list[list[Hypothesis]] = [[] for _ in range(memory.rows)]
        for row, entry in enumerate(memory.owner(len(tokens)).tolist()):
            if failed[row]:
                continue
            body = [token for token in tokens[row][unfinished[row]].tolist() if token != decoder.eos]
            own = log_probs[row][unfinished[row]].tolist()
            found[entry].append(Hypothesis(forced[entry] + body, sum(own), own))
        return [sorted(each, key=lambda one: -one.score) for each in found]

    def draw(self, scores: Array, generator: Any) -> Array:
        """One token per row.  (rows, V) -> (rows,)"""
        try:
            return arrays.draw(self.probabilities(scores), generator)
        except ValueError as error:
            raise SeqloomError(
                f"cannot draw from the model's scores, its training may have diverged: {error}"
            ) from None

    def probabilities(self, scores: Array) -> Array:
        """What to draw from: after temperature, top_k and top_p.  (rows, V) -> (rows, V)"""
        xp, scores = namespace(scores), scores / self.temperature
        if self.top_k:
            scores = keep_only(scores, *topk(scores, min(self.top_k, scores.shape[-1])))
        if self.top_p < 1:
            ordered, places = descending(scores)
            probabilities = xp.exp(log_softmax(ordered))
            before = probabilities.cumsum(1) - probabilities  # of the likelier tokens: the likeliest always stays
            scores = keep_only(scores, xp.where(before < self.top_p, ordered, NEVER), places)
        return xp.exp(log_softmax(scores))


def keep_only(scores: Array, kept: Array, places: Array) -> Array:
    """The kept scores at their places, -inf at all others: of equal scores no more stay than asked for."""
    xp, found = namespace(scores), namespace(scores).full_like(scores, NEVER)
    found[xp.arange(len(scores), device=scores.device)[:, None], places] = kept
    return found
