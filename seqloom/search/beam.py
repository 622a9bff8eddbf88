"""Beam search: the likeliest outputs. With beam_size 1 it is greedy search.

Each step has three parts:

1. expand: the decoder scores every continuation of every hypothesis; constraints forbid some.
2. choose: the `beam_size` best continuations of each source become its hypotheses.
3. retire: finished hypotheses leave the beam, which narrows; sources that are done leave the batch.

A finished hypothesis competes by its normalised score. Early stopping is safe: a source is done when no hypothesis in
its beam can still enter the n-best list, since more tokens only lower a log-probability and the normaliser is bounded.

A model trained by beam-search optimisation (Wiseman & Rush 2016) scores whole outputs by the logit of their last token:
rank_by="last" ranks by that logit alone. It may rise again, so nothing is stopped early, and it is not normalised.

While more of the source may come, the search stops before a step in which a hypothesis waits for it or has reached the
limit, which a longer source raises. It goes on with the same steps as if all of the source had been there at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np

from seqloom.arrays import NEVER, Array, as_numpy, cast, log_softmax, maybe_any, namespace, topk
from seqloom.contracts import Constraint, Search, Stepper
from seqloom.search.backtrace import Backtrace, Path, Step
from seqloom.search.certain import split_certain
from seqloom.search.constraints.combined import Constraints
from seqloom.search.coverage import coverages
from seqloom.search.options import LENGTH_PENALTY, SearchOptions, check_beam_size, prefix_tokens, steps_between_checks
from seqloom.search.trail import Trail
from seqloom.types import Hypothesis, Memory, Padded, State, select
from seqloom.values import expect


@dataclass(frozen=True)
class Beam:
    """K hypotheses per source that is not done, and the steps that led to them. A total of -inf: no hypothesis."""

    entries: Array  # (B,): which sources
    tokens: Array  # (B * K,): the last token, which the decoder has not read yet
    state: State  # of the decoder, before that token
    totals: Array  # (B, K)
    slots: Array  # (B,): how many of the K are not taken by finished outputs
    best: Array  # (B, n_best): the best finished scores so far
    constraints: Constraints
    prefix: Padded | None
    open: bool = False  # more of the source may come
    finished: Array | None = None  # (B, K): which hypotheses ended in the last step
    recorded: Trail = field(default_factory=Trail)  # the fields of `Step`, step by step

    @property
    def steps(self) -> list[Step]:
        """All steps so far."""
        return [Step(*arrays) for arrays in self.recorded]

    def select(self, keep: Array) -> Beam:
        """The sources at these places only."""
        width = self.totals.shape[1]
        rows = (keep[:, None] * width + namespace(keep).arange(width, device=keep.device)).flatten()
        return replace(
            self,
            entries=self.entries[keep],
            tokens=self.tokens[rows],
            state=select(self.state, rows),
            totals=self.totals[keep],
            slots=self.slots[keep],
            best=self.best[keep],
            constraints=self.constraints.select(rows),
        )


class Expansion(NamedTuple):
    """All continuations of all hypotheses."""

    log_probs: Array  # (B * K, V): -inf where a constraint forbids a token
    scores: Array  # (B * K, V): what they are ranked by,
    totals: Array  # (B, K): added to these
    state: State  # after the last token was read
    constraints: Constraints


class BeamSearch(Search):
    """normalisation="length": score / L^length_penalty, the mean at 1. "gnmt": score / ((5 + L) / 6)^length_penalty.

    L counts EOS. coverage_penalty is GNMT's beta (Wu et al. 2016, eq. 14): it re-ranks the finished outputs.
    rank_by="last": by the logit of the last token, without penalties; log_probs are still log-probabilities.
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
        check_beam_size(beam_size, n_best)
        expect(-LENGTH_PENALTY, LENGTH_PENALTY, length_penalty=length_penalty)
        expect(-1000, 1000, coverage_penalty=coverage_penalty)
        if rank_by == "last":
            if coverage_penalty:
                raise ValueError(f'rank_by = "last" has no penalties: leave out coverage_penalty = {coverage_penalty}')
            length_penalty, early_stopping = 0.0, False
        self.beam_size, self.n_best, self.rank_by = beam_size, n_best, rank_by
        self.length_penalty, self.normalisation, self.coverage_penalty = length_penalty, normalisation, coverage_penalty
        self.options = SearchOptions(minimum_length, maximum_length, no_repeat)
        self.early_stopping = early_stopping and not coverage_penalty  # a penalty known only at the end bounds nothing

    def normaliser(self, length: Array) -> Array:
        """What a score is divided by, for an array of lengths or one number."""
        return (length if self.normalisation == "length" else (5 + length) / 6) ** self.length_penalty

    def start(
        self,
        decoder: Stepper,
        memory: Memory,
        prefix: Padded | None = None,
        constraints: Sequence[Constraint] = (),
    ) -> Beam:
        tokens, state, begun = self.options.start_rows(self.beam_size, decoder, memory, prefix, constraints)
        xp, device = namespace(tokens), tokens.device
        # float32, or more once scores of higher precision are added
        totals = xp.full((memory.rows, self.beam_size), NEVER, dtype=xp.float32, device=device)
        totals[:, 0] = 0  # all rows of a source begin alike: expand only one of them
        return Beam(
            entries=xp.arange(memory.rows, device=device),
            tokens=tokens,
            state=state,
            totals=totals,
            slots=xp.full_like(tokens[:: self.beam_size], self.beam_size),
            best=xp.full_like(totals[:, : self.n_best], NEVER),
            constraints=begun,
            prefix=prefix,
            open=not memory.closed,
        )

    def advance(self, decoder: Stepper, memory: Memory, beam: Beam) -> Beam:
        if beam.open:
            beam = self.raise_limit(decoder, memory, beam)
        if len(beam.entries) < memory.rows:
            memory = memory.select(beam.entries)
        while len(beam.entries):
            expansion = self.expand(decoder, memory, beam)
            if expansion is None:  # a hypothesis waits for more of the source
                break
            beam = self.choose(decoder, memory, beam, expansion)
            del expansion  # free its (B * K, V) scores before the next step
            beam, memory = self.retire(beam, memory)
        return beam

    def raise_limit(self, decoder: Stepper, memory: Memory, beam: Beam) -> Beam:
        """There is more of the source now: outputs may be longer."""
        if not len(beam.entries):
            return replace(beam, open=not memory.closed)
        limit = self.options.limit(decoder, memory, beam.prefix)[beam.entries]  # (B,)
        rows = memory.select(beam.entries).owner(len(beam.tokens))
        return replace(beam, constraints=beam.constraints.grown(limit[rows]), open=not memory.closed)

    def expand(self, decoder: Stepper, memory: Memory, beam: Beam) -> Expansion | None:
        """1. Score every continuation of every hypothesis; None if one of them waits for more of the source."""
        xp = namespace(beam.totals)
        logits, state = decoder.step(beam.tokens, beam.state, memory)
        constraints = beam.constraints.step(beam.tokens)
        if not memory.closed:
            waits = (logits == NEVER).all(1) | constraints.last
            if bool((waits & (beam.totals > NEVER).flatten()).any()):
                return None
        normalised = xp.asarray(logits, copy=True) if decoder.scores == "log_probs" else log_softmax(logits)
        log_probs = constraints.forbid(normalised)  # (B * K, V)
        if self.rank_by == "sum":
            return Expansion(log_probs, log_probs, beam.totals, state, constraints)
        scores = xp.where(log_probs == NEVER, NEVER, logits)
        return Expansion(log_probs, scores, xp.where(beam.totals == NEVER, beam.totals, 0), state, constraints)

    def choose(self, decoder: Stepper, memory: Memory, beam: Beam, expansion: Expansion) -> Beam:
        """2. Keep the best continuations of each source."""
        log_probs, scores, before, state, constraints = expansion
        xp, (count, width) = namespace(before), before.shape
        # The best of a source are among the best of its rows.
        each = min(width, scores.shape[1])
        best, tokens = (part.reshape(count, -1) for part in topk(scores, each))  # (B, K * each)
        totals, places = topk((before[:, :, None] + best.reshape(count, width, each)).reshape(count, -1), width)
        sources = xp.arange(count, device=totals.device)[:, None]
        parents, tokens = places // each, tokens[sources, places]  # (B, K)
        ranks = xp.arange(width, device=totals.device)
        totals = xp.where(ranks < beam.slots[:, None], totals, NEVER)
        if self.rank_by == "sum":
            chosen = best[sources, places]
        else:
            chosen = log_probs.reshape(count, width, -1)[sources, parents, tokens]

        ended = constraints.last.reshape(count, width) if decoder.eos is None else tokens == decoder.eos
        read = decoder.states_read(state, memory)
        times = None if read is None else read.reshape(count, width)[sources, parents]
        finished = ended & (totals > NEVER)
        if width > 1:
            rows = (sources * width + parents).flatten()
            state, constraints = select(state, rows), constraints.select(rows)
        return replace(
            beam,
            tokens=tokens.flatten(),
            state=state,
            totals=totals,
            constraints=constraints,
            finished=finished,
            recorded=beam.recorded.add(beam.entries, parents, tokens, chosen, totals, finished, times),
        )

    def retire(self, beam: Beam, memory: Memory) -> tuple[Beam, Memory]:
        """3. Finished hypotheses leave the beam, and sources that are done the batch."""
        xp, totals, finished = namespace(beam.totals), beam.totals, beam.finished
        assert finished is not None, "`choose` comes first"
        if maybe_any(finished):
            lengths = cast(beam.constraints.states["count"].reshape(totals.shape), totals)
            scores = xp.where(finished, totals / self.normaliser(lengths), NEVER)
            beam = replace(
                beam,
                totals=xp.where(finished, NEVER, totals),
                slots=beam.slots - finished.sum(1),
                best=topk(xp.concat([beam.best, scores], 1), self.n_best)[0],
            )
        if len(beam.recorded) % steps_between_checks(beam.tokens) or bool((beam.totals > NEVER).all()):
            return beam, memory
        done = self.done(beam)
        if int(done.sum()) * 4 < len(done):  # leaving copies the sources that stay: wait until it pays
            return beam, memory
        keep = xp.argwhere(~done)[:, 0]
        return beam.select(keep), memory.select(keep)

    def done(self, beam: Beam) -> Array:
        """Sources whose beam can no longer change the n-best list.  (B,)"""
        xp = namespace(beam.totals)
        highest = xp.amax(beam.totals, 1)
        limit, count = (beam.constraints.states[name].reshape(beam.totals.shape)[:, 0] for name in ("limit", "count"))
        over = (highest == NEVER) | ((count >= limit) & (not beam.open))
        if beam.open or not self.early_stopping:
            return over
        bounds = [highest / self.normaliser(cast(length, highest)) for length in (count + 1, limit)]
        return over | (xp.maximum(*bounds) <= beam.best[:, -1])

    def finish(self, decoder: Stepper, memory: Memory, beam: Beam) -> list[list[Hypothesis]]:
        """The n_best finished outputs of each source, best first; fewer if the constraints allow no more."""
        found = self.finished(Backtrace.of(beam.steps, prefix_tokens(beam.prefix, memory.rows)), decoder.eos)
        if self.coverage_penalty:
            for entry, hypotheses in enumerate(found):
                found[entry] = [
                    replace(each, score=each.score + self.coverage_penalty * coverage)
                    for each, coverage in zip(hypotheses, coverages(decoder, memory, entry, hypotheses))
                ]
        return [sorted(each, key=lambda one: -one.score)[: self.n_best] for each in found]

    def finished(self, trace: Backtrace, eos: int | None) -> list[list[Hypothesis]]:
        """All finished outputs of each source, without EOS."""
        found: list[list[Hypothesis]] = [[] for _ in trace.prefixes]
        for entry, path in trace.finished():
            tokens = path.tokens if eos is None else path.tokens[:-1]
            score = path.total / self.normaliser(len(path.tokens))
            times = path.times and path.times[: len(tokens)]
            found[entry].append(Hypothesis(tokens, score, path.log_probs, times=times))
        return found

    def so_far(self, beam: Beam) -> list[tuple[list[int], list[int], list[int]]]:
        """Of each source the beginning that all hypotheses share, the rest of the best one, and its times."""
        steps, totals = beam.steps, as_numpy(beam.totals)
        sources = len(steps[0].entries if steps else beam.entries)
        trace = Backtrace.of(steps, prefix_tokens(beam.prefix, sources))
        live: list[list[Path]] = [[] for _ in range(sources)]
        for row, entry in enumerate(as_numpy(beam.entries).tolist()):
            for slot in np.flatnonzero(totals[row] > NEVER).tolist():
                live[entry].append(trace.path(entry, len(steps) - 1, slot))
        found = []
        for paths, finished in zip(live, self.finished(trace, beam.constraints.eos)):
            going = [(one.total, one.tokens, one.times) for one in paths]
            over = [(one.score, one.tokens, one.times) for one in finished]
            _, best, times = max(going or over, default=(0.0, [], []))
            others = [tokens for _, tokens, _ in going + over] if going else []  # else nothing can change any more
            found.append(split_certain(best, others, times or []))
        return found
