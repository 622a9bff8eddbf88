"""Prefix beam search: the likeliest outputs of a decoder with a blank, all alignments of an output counted.

Such a decoder can write an output in many ways, which differ in when each token is written. The search goes through
the source frame by frame and keeps the `beam_size` best outputs. Each frame has three parts, the first two repeated:

1. read: the decoder reads the last token of each row and scores the next; constraints forbid some.
2. expand: each row goes on with one more token, or with a blank, which ends the frame for it (Graves 2012, section 2.5;
   Saon, Tueske & Audhkhasi 2020). Where every token moves to the next frame (`advances = "all"`: CTC; Graves et al.
   2006, Hannun et al. 2014) this happens once per frame.
3. merge: rows with the same output become one, and their probabilities are added.

With beam_size 1 it is greedy search. No row enters a frame before all have left the one before, so that a source may
come at once or in pieces: where a search stopped, it goes on with the same comparisons when more has come.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from seqloom.arrays import NEVER, Array, as_numpy, cast, namespace, topk
from seqloom.contracts import Constraint, Search, Stepper
from seqloom.errors import SeqloomError
from seqloom.search.certain import split_certain
from seqloom.search.constraints.combined import Constraints
from seqloom.search.constraints.no_repeat import NoRepeat
from seqloom.search.constraints.prefix import ForcedPrefix
from seqloom.search.continuations import Continuations
from seqloom.search.merging import Group, merge, merge_halves, source_index
from seqloom.search.options import LENGTH_PENALTY, MOST_TOKENS, NOT_FINITE, SearchOptions, check_beam_size
from seqloom.search.prefixes import Prefixes
from seqloom.search.transcript import FinishedOutput, Transcript, TranscriptColumns, trim
from seqloom.types import Hypothesis, Memory, Padded, hold, select
from seqloom.values import expect

UNLIMITED = 1 << 40  # tokens of an output without a maximum_length


class PrefixBeam(Search):
    """score = log-probability / L^length_penalty; L counts EOS. symbols_per_state: at most so many tokens per frame.

    certain_after: tokens that the best hypothesis wrote so many frames ago are certain, and hypotheses that differ in
    them are dropped. Otherwise two equally likely ones that differ in their first token might be kept for ever.
    The log_prob of a token is the change of the hypothesis' total since the token before, blanks and merging included:
    they sum to the log-probability of the output.
    """

    def __init__(
        self,
        *,
        beam_size: int = 5,
        n_best: int = 1,
        symbols_per_state: int = 10,
        length_penalty: float = 0.0,
        minimum_length: int = 0,
        maximum_length: int | None = None,
        certain_after: int = 500,
    ):
        check_beam_size(beam_size, n_best)
        expect(1, MOST_TOKENS, symbols_per_state=symbols_per_state, certain_after=certain_after)
        expect(-LENGTH_PENALTY, LENGTH_PENALTY, length_penalty=length_penalty)
        self.beam_size, self.n_best, self.symbols_per_state = beam_size, n_best, symbols_per_state
        self.length_penalty, self.certain_after = length_penalty, certain_after
        self.options = SearchOptions(minimum_length, maximum_length, 0)

    def suit(self, decoder: Stepper) -> None:
        if not decoder.blanks:
            raise ValueError('searches decoders with blanks only; take "beam"')

    def start(
        self,
        decoder: Stepper,
        memory: Memory,
        prefix: Padded | None = None,
        constraints: Sequence[Constraint] = (),
    ) -> Prefixes:
        if len(decoder.blanks) != 1 or decoder.eos is None:
            raise SeqloomError('search.type = "prefix_beam": for decoders with a blank; expected "beam" here')
        if any(isinstance(each, NoRepeat) for each in constraints):
            raise SeqloomError('search.type = "prefix_beam": repeats cannot be forbidden here; leave no_repeat out')
        constraints = self.options.constraints(decoder, constraints)
        lengths = memory.lengths
        xp, (count,) = namespace(lengths), lengths.shape
        # Not the decoder's own limit: it counts frames, and depends on how much of the source has come.
        limit = xp.full_like(lengths, max(self.options.maximum_length or UNLIMITED, self.options.minimum_length + 1))
        if prefix is not None and prefix.values.shape[1]:
            constraints.append(ForcedPrefix(prefix))
            limit = xp.maximum(limit, prefix.lengths + 1)
        begun = Constraints.begin(constraints, decoder, limit, None)
        width = self.beam_size * (2 if decoder.advances == "all" else 1)  # "all": rows with a blank, rows with a token
        totals = xp.full((count, width), NEVER, dtype=xp.float32, device=lengths.device)
        totals[:, 0] = 0  # all rows of a source begin alike: expand only one of them
        no_tokens = xp.zeros((count, 0), dtype=lengths.dtype, device=lengths.device)
        rows = {
            "token": xp.full_like(lengths, decoder.bos),
            "state": decoder.start(memory),
            "constraints": begun.states,
            "key": xp.zeros_like(lengths),
            "count": xp.zeros_like(lengths),
            "tokens": no_tokens,
            "times": no_tokens,
            "sums": totals[:, :0],
        }
        group = Group(select(rows, memory.owner(count * width)), totals)
        return Prefixes(group, replace(begun, states={}), (Transcript(),) * count, ({},) * count)

    def advance(self, decoder: Stepper, memory: Memory, beam: Prefixes) -> Prefixes:
        while bool((beam.group.totals > NEVER).any()):
            if beam.group.rows["tokens"].shape[1] > 2 * self.certain_after:  # each frame copies what rows have written
                beam = beam.factor_out_common()
            after = self.advance_frame(decoder, memory, beam)
            if after is None:  # more of the source must come first
                return beam.factor_out_common()
            beam = after
        return beam

    def advance_frame(self, decoder: Stepper, memory: Memory, beam: Prefixes) -> Prefixes | None:
        """The beam after one frame; None if a row waits for more of the source."""
        group, pool = beam.group, None  # rows that may write more in this frame; rows that are through with it
        states_read = None  # by the rows that begin the frame
        for written in range(self.symbols_per_state + 1):
            after = self.read(decoder, memory, beam, group)
            if after is None:
                return None
            if decoder.advances == "all":
                after = merge_halves(after, self.beam_size)
            found = self.expand(decoder, memory, after, only_blank=written == self.symbols_per_state)
            states_read = found.read if states_read is None else states_read
            if bool((found.ends > NEVER).any()):
                beam = beam.add_finished(found.rows, found.ends)
            if decoder.advances == "all":
                pool = found.with_either(self.beam_size)
                break
            pool = found.with_blank() if pool is None else merge(pool, found.with_blank(), self.beam_size)
            xp, totals = namespace(pool.totals), found.totals
            if not decoder.may_rise:
                # More tokens only lower a total: rows below all rows of the pool would never enter it.
                hopeless = xp.amax(totals, 1) < xp.amin(pool.totals, 1)
                totals = xp.where(hopeless[:, None], NEVER, totals)
            if not bool((totals > NEVER).any()):
                break
            group = found.with_token(totals)
        assert pool is not None
        assert states_read is not None
        return replace(beam, group=self.enforce_certain(trim(pool), states_read))

    def read(self, decoder: Stepper, memory: Memory, beam: Prefixes, group: Group) -> Group | None:
        """1. Read the last tokens: "scores" are those of the next ones. None if a row waits for more of the source."""
        rows, xp = group.rows, namespace(group.totals)
        token, blank = rows["token"], decoder.blanks[0]
        log_probs, state = decoder.step(token, rows["state"], memory)  # (rows, V)
        highest = xp.where((group.totals > NEVER).flatten(), xp.amax(log_probs, 1), 0)
        if bool(xp.isnan(highest).any()):
            raise SeqloomError(NOT_FINITE)
        if not memory.closed and bool((highest == NEVER).any()):
            return None
        # Constraints are about outputs: a blank does not change their states, and they cannot forbid it.
        before = rows["constraints"]
        constraints = replace(beam.constraints, states=before).step(token)
        constraints = replace(constraints, states=hold(token == blank, constraints.states, before))
        scores = constraints.forbid(xp.asarray(log_probs, copy=True))
        scores[:, blank] = log_probs[:, blank]
        return Group({**rows, "state": state, "constraints": constraints.states, "scores": scores}, group.totals)

    def expand(self, decoder: Stepper, memory: Memory, group: Group, only_blank: bool) -> Continuations:
        """2. Continue each row with a blank, with EOS, and with the best tokens."""
        rows, totals = {**group.rows}, group.totals
        (count, width), xp, blank = totals.shape, namespace(totals), decoder.blanks[0]
        scores = rows.pop("scores")
        blanks, ends = (totals + scores[:, token].reshape(count, width) for token in (blank, decoder.eos))
        scores[:, blank] = scores[:, decoder.eos] = NEVER
        # The best of a source are among the best of its rows.
        each = min(width, scores.shape[1])
        best, tokens = (part.reshape(count, -1) for part in topk(scores, each))  # (B, K * each)
        longer, places = topk((totals[:, :, None] + best.reshape(count, width, each)).reshape(count, -1), width)
        if only_blank:
            longer = xp.full_like(longer, NEVER)
        if decoder.advances == "blank":  # the best of both; with "all", after equal outputs have been matched
            least = topk(xp.concat([blanks, longer], 1), width)[0][:, -1:]
            blanks, longer = (xp.where(values < least, NEVER, values) for values in (blanks, longer))
        read = decoder.states_read(rows["state"], memory)
        assert read is not None, "a decoder with blanks knows how much it has read"
        read = xp.where(totals.flatten() > NEVER, read, 0)  # rows that are not live may be anywhere
        tokens = tokens[source_index(places), places]
        return Continuations(rows, cast(read, places), blanks, ends, longer, places // each, tokens, blank)

    def enforce_certain(self, group: Group, read: Array) -> Group:
        """Drop rows that differ from the best one in tokens that are certain by now."""
        xp, rows, (count, width) = namespace(read), group.rows, group.totals.shape
        longest = rows["tokens"].shape[1]
        old = xp.amax(read.reshape(count, -1), 1) - self.certain_after  # (B,)
        if not longest or not bool((old > 0).any()):
            return group
        tokens, times, sums = (rows[name].reshape(count, width, longest) for name in Transcript._fields)
        places, counts = xp.arange(longest, device=read.device), rows["count"].reshape(count, width)
        best = xp.argmax(group.totals, 1)[:, None]  # (B, 1)
        ours = [part[source_index(best), best] for part in (tokens, times, sums)]  # each (B, 1, L)
        certain = (ours[1] <= old[:, None, None]) & (places < counts[source_index(best), best][:, :, None])
        differs = (certain & ((tokens != ours[0]) | (places >= counts[:, :, None]))).any(2)  # (B, W)
        # Other rows may have written the same tokens at other times: certain tokens have the times of the best.
        times, sums = (xp.where(certain, one, part) for one, part in zip(ours[1:], (times, sums)))
        aligned = {"times": times.reshape(-1, longest), "sums": sums.reshape(-1, longest)}
        return Group({**rows, **aligned}, xp.where(differs, NEVER, group.totals))

    def score(self, output: FinishedOutput) -> float:
        return output.total / (len(output.transcript.tokens) + 1) ** self.length_penalty

    def finish(self, decoder: Stepper, memory: Memory, beam: Prefixes) -> list[list[Hypothesis]]:
        """The n_best finished outputs of each source, best first."""
        found = []
        for finished in beam.finished:
            best = sorted(finished.values(), key=lambda one: -self.score(one))[: self.n_best]
            found.append([self.hypothesis(each) for each in best])
        return found

    def hypothesis(self, output: FinishedOutput) -> Hypothesis:
        tokens, times, sums = output.transcript
        log_probs = [after - before for before, after in zip((0.0, *sums), (*sums, output.total))]
        return Hypothesis(list(tokens), self.score(output), log_probs, times=list(times))

    def so_far(self, beam: Prefixes) -> list[tuple[list[int], list[int], list[int]]]:
        """Of each source the beginning that all hypotheses share, the rest of the best one, and its times."""
        totals, columns = as_numpy(beam.group.totals), TranscriptColumns.of(beam.group.rows)
        found = []
        for source, (common, finished) in enumerate(zip(beam.common, beam.finished)):
            live: dict[Transcript, float] = {}
            for row in np.flatnonzero(totals[source] > NEVER).tolist():
                one = columns.row(source * totals.shape[1] + row)
                same = next((each for each in live if each.tokens == one.tokens), one)
                live[same] = float(np.logaddexp(live.get(same, NEVER), totals[source, row]))
            if live:
                best = common.extend(max(live, key=lambda one: live[one]))
                others = [common.tokens + one.tokens for one in live] + list(finished)
            else:  # nothing can change any more
                best = max(finished.values(), key=self.score).transcript if finished else common
                others = []
            found.append(split_certain(best.tokens, others, best.times))
        return found
