"""Beam search: the likeliest outputs, a few at a time. With beam_size 1 it is greedy search.

A step keeps the `beam_size` best of all continuations of a source. Finished ones leave the beam, which narrows,
and keep competing by their normalised score. Early stopping is safe: a source is done when no live hypothesis
can still enter the n-best list, since more tokens only lower a log-probability and the normaliser is bounded.

A model trained by beam-search optimisation (Wiseman & Rush 2016) says with the score of a token what the whole output
up to it is worth: rank_by="last" ranks by the last score alone, as it comes from the model. It may rise again, so that
nothing is stopped early, and it is not normalised.

Where more of the source may come, the search stops before a step in which a hypothesis waits for it, or is as long as
what has come allows, and goes on when it has come: with the same steps as if all had been there at once.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from seqloom.arrays import Array, as_numpy, cast, like, log_softmax, maybe_any, namespace, topk
from seqloom.contracts import Constraint, Search, Stepper
from seqloom.errors import SeqloomError
from seqloom.search.constraints.combined import Constraints
from seqloom.search.opening import NOT_FINITE, Opening, check_width, prefixes, steps_between_questions
from seqloom.types import Hypothesis, Memory, Padded, State, select


@dataclass(frozen=True)
class Step:
    """One step of all live sources: the best continuations, best first. Following parents gives outputs."""

    entries: Array  # (B,): which source
    parents: Array  # (B, K): which of the step before
    tokens: Array  # (B, K)
    log_probs: Array  # (B, K): of the token
    totals: Array  # (B, K): what the output so far is worth; -inf where there is no continuation
    finished: Array  # (B, K)
    times: Array | None = None  # (B, K): how much of the source had been read; None: all


@dataclass(frozen=True)
class Beam:
    """Live hypotheses, K rows a source, and the steps that led to them."""

    entries: Array  # (B,): sources that are not done
    tokens: Array  # (B * K,)
    state: State
    totals: Array  # (B, K)
    slots: Array  # (B,): how many of the K are not taken by finished outputs
    best: Array  # (B, n_best): the best finished scores so far
    constraints: Constraints
    prefix: Padded | None
    open: bool = False  # more of the source may come
    steps: tuple[Step, ...] = ()


class BeamSearch(Search):
    """normalisation="length": score / L^length_penalty, lecture 004's 1/L at 1. "gnmt": / ((5 + L) / 6)^length_penalty.

    L counts EOS. coverage_penalty is GNMT's beta (Wu et al. 2016, eq. 14): it re-ranks the finished outputs.
    rank_by="last": by the model's score of the last token, without penalties; log_probs are still log-probabilities.
    """

    def __init__(
        self,
        *,
        beam_size: int = 5,
        n_best: int = 1,
        length_penalty: float = 1.0,
        normalisation: Literal["length", "gnmt"] = "length",
        coverage_penalty: float = 0.0,
        minimum_length: int = 0,
        maximum_length: int | None = None,
        no_repeat: int = 0,
        early_stopping: bool = True,
        rank_by: Literal["sum", "last"] = "sum",
    ):
        check_width(beam_size, n_best)
        if rank_by == "last":
            if coverage_penalty:
                raise ValueError(f'rank_by = "last" has no penalties: leave out coverage_penalty = {coverage_penalty}')
            length_penalty, early_stopping = 0.0, False
        self.beam_size, self.n_best, self.rank_by = beam_size, n_best, rank_by
        self.length_penalty, self.normalisation, self.coverage_penalty = length_penalty, normalisation, coverage_penalty
        self.opening = Opening(minimum_length, maximum_length, no_repeat)
        self.early_stopping = early_stopping and not coverage_penalty  # a penalty known only at the end bounds nothing

    def normaliser(self, length: Array) -> Array:
        """What a score is divided by: an array, or a number."""
        return (length if self.normalisation == "length" else (5 + length) / 6) ** self.length_penalty

    def start(
        self,
        decoder: Stepper,
        memory: Memory,
        prefix: Padded | None = None,
        constraints: Sequence[Constraint] = (),
    ) -> Beam:
        tokens, state, begun = self.opening.rows(self.beam_size, decoder, memory, prefix, constraints)
        xp, device = namespace(tokens), tokens.device
        # Sums are as precise as the scores that will be added, and float32 at least.
        totals = xp.full((memory.rows, self.beam_size), float("-inf"), dtype=xp.float32, device=device)
        totals[:, 0] = 0  # all rows of a source begin alike: expand one of them only
        return Beam(
            entries=xp.arange(memory.rows, device=device),
            tokens=tokens,
            state=state,
            totals=totals,
            slots=xp.full_like(tokens[:: self.beam_size], self.beam_size),
            best=xp.full_like(totals[:, : self.n_best], float("-inf")),
            constraints=begun,
            prefix=prefix,
            open=not memory.closed,
        )

    def advance(self, decoder: Stepper, memory: Memory, beam: Beam) -> Beam:
        live = memory if len(beam.entries) == memory.rows else memory.select(beam.entries)
        every = steps_between_questions(beam.tokens)
        if beam.open:
            beam = self.reopened(decoder, memory, beam)
        while len(beam.entries):
            after = self.step(decoder, live, beam)
            if after is None:
                break
            beam = after
            if len(beam.steps) % every == 0 and not bool((beam.totals > float("-inf")).all()):  # something has ended
                done = self.done(beam)
                # leaving sources copies those that stay, so wait until it pays
                if int(done.sum()) * 4 >= len(done):
                    keep = namespace(done).argwhere(~done)[:, 0]
                    beam, live = leave(beam, keep), live.select(keep)
        return beam

    def reopened(self, decoder: Stepper, memory: Memory, beam: Beam) -> Beam:
        """The beam of a source of which there is more now: outputs may be longer."""
        if not len(beam.entries):
            return replace(beam, open=not memory.closed)
        limit = self.opening.limit(decoder, memory, beam.prefix)[beam.entries]  # (B,)
        rows = memory.select(beam.entries).owner(len(beam.tokens))
        return replace(beam, constraints=beam.constraints.grown(limit[rows]), open=not memory.closed)

    def step(self, decoder: Stepper, memory: Memory, beam: Beam) -> Beam | None:
        """One more token for each live hypothesis; None if one waits for more of the source."""
        xp, (count, width) = namespace(beam.totals), beam.totals.shape
        logits, state = decoder.step(beam.tokens, beam.state, memory)
        constraints = beam.constraints.step(beam.tokens)
        if not memory.closed:
            waits = (logits == float("-inf")).all(1) | constraints.last
            if bool((waits & (beam.totals > float("-inf")).flatten()).any()):
                return None
        normalised = xp.asarray(logits, copy=True) if decoder.scores == "log_probs" else log_softmax(logits)
        log_probs = constraints.forbid(normalised)  # (B * K, V)
        scores, before = log_probs, beam.totals
        if self.rank_by == "last":
            scores = xp.where(log_probs == float("-inf"), float("-inf"), logits)
            before = xp.where(before == float("-inf"), before, 0)
        # The best of a source are among the best of its rows.
        each = min(width, scores.shape[1])
        best, symbols = (part.reshape(count, -1) for part in topk(scores, each))  # (B, K * each)
        totals, places = topk((before[:, :, None] + best.reshape(count, width, each)).reshape(count, -1), width)
        sources = xp.arange(count, device=totals.device)[:, None]
        chosen, tokens = best[sources, places], symbols[sources, places]  # (B, K)
        ranks = xp.arange(width, device=totals.device)
        totals = xp.where(ranks < beam.slots[:, None], totals, float("-inf"))
        parents = places // each
        if self.rank_by == "last":
            chosen = log_probs.reshape(count, width, -1)[sources, parents, tokens]

        ended = constraints.last.reshape(count, width) if decoder.eos is None else tokens == decoder.eos
        finished = ended & (totals > float("-inf"))
        seen = decoder.states_read(state, memory)
        times = None if seen is None else seen.reshape(count, width)[sources, parents]
        if width > 1:
            rows = (sources * width + parents).flatten()
            state, constraints = select(state, rows), constraints.select(rows)
        after = replace(
            beam,
            tokens=tokens.flatten(),
            state=state,
            totals=totals,
            constraints=constraints,
            steps=(*beam.steps, Step(beam.entries, parents, tokens, chosen, totals, finished, times)),
        )
        if not maybe_any(finished):
            return after
        lengths = cast(constraints.states["count"].reshape(count, width), totals)
        scores = xp.where(finished, totals / self.normaliser(lengths), float("-inf"))
        return replace(
            after,
            totals=xp.where(finished, float("-inf"), totals),
            slots=beam.slots - finished.sum(1),
            best=topk(xp.concat([beam.best, scores], 1), self.n_best)[0],
        )

    def done(self, beam: Beam) -> Array:
        """Sources without a live hypothesis that could still matter.  (B,)"""
        xp = namespace(beam.totals)
        highest = xp.amax(beam.totals, 1)
        limit, count = (beam.constraints.states[name].reshape(beam.totals.shape)[:, 0] for name in ("limit", "count"))
        over = (highest == float("-inf")) | ((count >= limit) & (not beam.open))
        if beam.open or not self.early_stopping:
            return over
        bounds = [highest / self.normaliser(cast(length, highest)) for length in (count + 1, limit)]
        return over | (xp.maximum(*bounds) <= beam.best[:, -1])

    def finish(self, decoder: Stepper, memory: Memory, beam: Beam) -> list[list[Hypothesis]]:
        """The finished outputs of each source, n_best of them, best first; fewer if a constraint allows no more."""
        way = Way.of(beam, memory.rows)
        found: list[list[Hypothesis]] = [[] for _ in range(memory.rows)]
        for entry, number, slot in way.finished():
            tokens, log_probs, times = way.to(entry, number, slot)
            forced = way.forced[entry]
            length = len(forced) + len(tokens)
            score = way.total(entry, number, slot) / self.normaliser(length)
            body = len(tokens) if decoder.eos is None else len(tokens) - 1
            read = None if times is None else [0] * len(forced) + times[:body]
            found[entry].append(Hypothesis(forced + tokens[:body], score, log_probs, times=read))
        if self.coverage_penalty:
            found = self.covered(decoder, memory, found)
        return [sorted(each, key=lambda one: -one.score)[: self.n_best] for each in found]

    def so_far(self, beam: Beam) -> list[tuple[list[int], list[int], list[int]]]:
        """Of each source what all hypotheses begin with, and how the best one goes on."""
        sources = len(beam.steps[0].entries) if beam.steps else len(beam.entries)
        way, totals = Way.of(beam, sources), as_numpy(beam.totals)
        live: list[list[tuple[float, list[int], list[int]]]] = [[] for _ in range(sources)]
        ended: list[list[tuple[float, list[int], list[int]]]] = [[] for _ in range(sources)]
        for row, entry in enumerate(as_numpy(beam.entries).tolist()):
            for slot in np.flatnonzero(totals[row] > float("-inf")).tolist():
                tokens, _, times = way.to(entry, len(way.steps) - 1, slot)
                live[entry].append((float(totals[row, slot]), way.forced[entry] + tokens, times or []))
        for entry, number, slot in way.finished():
            tokens, _, times = way.to(entry, number, slot)
            score = way.total(entry, number, slot) / self.normaliser(len(way.forced[entry]) + len(tokens))
            body = len(tokens) if beam.constraints.eos is None else len(tokens) - 1
            ended[entry].append((score, way.forced[entry] + tokens[:body], (times or [])[:body]))
        found = []
        for going, over in zip(live, ended):
            _, best, times = max(going or over, default=(0.0, [], []))
            found.append(settled(best, [tokens for _, tokens, _ in (*going, *over)] if going else (), times))
        return found

    def covered(self, decoder: Stepper, memory: Memory, found: list[list[Hypothesis]]) -> list[list[Hypothesis]]:
        """Scores with beta * sum_i log(min(sum_j a_ij, 1)) added: a source word nobody looked at costs."""
        result = []
        for entry, hypotheses in enumerate(found):
            scored = []
            if hypotheses:
                inputs = Padded.stack([np.array([decoder.bos, *each.tokens]) for each in hypotheses])
                inputs = inputs.like(memory.lengths)
                ours = memory.select(like(memory.lengths, [entry]))
                maps = decoder(ours, inputs, attention=True).attention
                if "source" not in maps:
                    raise ValueError("coverage_penalty needs a decoder that attends the source")
                weights = maps["source"].mean((1, 2)) * inputs.mask[:, :, None]  # (n, U, T)
                xp = namespace(weights)
                seen = weights.sum(1)[:, : int(ours.lengths[0])].clip(xp.finfo(weights.dtype).tiny, 1)  # (n, T)
                coverage = xp.log(seen).sum(1)
                for each, amount in zip(hypotheses, coverage.tolist()):
                    scored.append(replace(each, score=each.score + self.coverage_penalty * amount))
            result.append(scored)
        return result


def leave(beam: Beam, keep: Array) -> Beam:
    """The beam of the sources at those places only."""
    width = beam.totals.shape[1]
    rows = (keep[:, None] * width + namespace(keep).arange(width, device=keep.device)).flatten()
    return replace(
        beam,
        entries=beam.entries[keep],
        tokens=beam.tokens[rows],
        state=select(beam.state, rows),
        totals=beam.totals[keep],
        slots=beam.slots[keep],
        best=beam.best[keep],
        constraints=beam.constraints.select(rows),
    )


def settled(
    best: Sequence[int], others: Iterable[Sequence[int]], times: Sequence[int]
) -> tuple[list[int], list[int], list[int]]:
    """The best output, divided after what all others have in common with it, and its times."""
    count = len(best)
    for other in others:
        if (shared := min(count, len(other))) == len(best) and best == other[:shared]:
            continue
        differs = (place for place, (one, two) in enumerate(zip(best, other)) if one != two)
        count = min(count, next(differs, min(count, len(other))))
    return list(best[:count]), list(best[count:]), list(times)


@dataclass(frozen=True)
class Way:
    """The steps of a search in numpy, to be walked back."""

    steps: list[Step]
    places: list[dict[int, int]]  # of each step, where each source stands in it
    forced: list[list[int]]  # of each source, its prefix

    @classmethod
    def of(cls, beam: Beam, sources: int) -> "Way":
        arrays = [[None if each is None else as_numpy(each) for each in vars(step).values()] for step in beam.steps]
        steps = [Step(*each) for each in arrays]
        if any(np.isnan(step.totals).any() for step in steps):
            raise SeqloomError(NOT_FINITE)
        places = [{int(entry): row for row, entry in enumerate(step.entries)} for step in steps]
        return cls(steps, places, prefixes(beam.prefix, sources))

    def finished(self) -> Iterator[tuple[int, int, int]]:
        """Source, step and place of each output that has ended."""
        for number, step in enumerate(self.steps):
            for row, slot in np.argwhere(step.finished).tolist():
                yield int(step.entries[row]), number, slot

    def total(self, entry: int, number: int, slot: int) -> float:
        return float(self.steps[number].totals[self.places[number][entry], slot])

    def to(self, entry: int, number: int, slot: int) -> tuple[list[int], list[float], list[int] | None]:
        """Tokens, their log-probabilities and times on the way to one place of the beam."""
        tokens, log_probs, times = [], [], []
        while number >= 0:
            step, row = self.steps[number], self.places[number][entry]
            tokens.append(int(step.tokens[row, slot]))
            log_probs.append(float(step.log_probs[row, slot]))
            if step.times is not None:
                times.append(int(step.times[row, slot]))
            slot = int(step.parents[row, slot])
            number -= 1
        return tokens[::-1], log_probs[::-1], times[::-1] if len(times) == len(tokens) else None
