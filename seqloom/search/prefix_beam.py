"""Prefix beam search: the likeliest outputs of a decoder that writes while it reads, all ways to write one counted.

A decoder with a blank writes an output in many ways: they differ in when. The search keeps the `beam_size` best
outputs of all that stand at the same place of the source, a tick of the frame for each place. Within a tick every row
chooses, again and again, between one more token and silence, which ends the tick (Graves 2012, section 2.5; Saon,
Tueske & Audhkhasi 2020). Rows that have written the same by the end of a tick become one, whose probability is their
sum. A decoder all of whose tokens go on (`advances = "all"`: CTC; Graves et al. 2006, Hannun et al. 2014) chooses once
per tick. With beam_size 1 it is greedy search.

No row enters a tick before all have left the last one, so that it does not matter whether the source was there at once
or came in pieces: what a search stopped for is decided when more has come, by the same comparisons.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from seqloom.arrays import Array, as_numpy, cast, like, namespace, topk
from seqloom.contracts import Constraint, Search, Stepper
from seqloom.errors import SeqloomError
from seqloom.search.certain import split_certain
from seqloom.search.constraints.combined import Constraints
from seqloom.search.constraints.no_repeat import NoRepeat
from seqloom.search.constraints.prefix import ForcedPrefix
from seqloom.search.merging import NEVER, Group, Pairs, halves, hashed, merged, side_by_side, sources
from seqloom.search.options import NOT_FINITE, SearchOptions, check_beam_size
from seqloom.types import Hypothesis, Memory, Padded, State, hold, select

ENDLESS = 1 << 40  # tokens that fit into an output without a maximum_length


class Written(NamedTuple):
    """An output, or the beginning of one: tokens, how much was read by then, what it was worth then."""

    tokens: tuple[int, ...] = ()
    times: tuple[int, ...] = ()
    sums: tuple[float, ...] = ()

    def followed(self, other: Written) -> Written:
        return Written(self.tokens + other.tokens, self.times + other.times, self.sums + other.sums)

    def first(self, count: int) -> Written:
        return Written(self.tokens[:count], self.times[:count], self.sums[:count])


@dataclass(frozen=True)
class Ending:
    """An output that has ended: its likeliest way, and the probability of all."""

    written: Written
    best: float
    total: float


@dataclass(frozen=True)
class Beam:
    """Hypotheses between two ticks, what all of a source have in common, and what has ended."""

    group: Group
    constraints: Constraints  # without rows: their states are those of the group
    common: tuple[Written, ...]  # of each source: no row of the group repeats it
    ended: tuple[dict[tuple[int, ...], Ending], ...]

    @property
    def state(self) -> State:
        """The decoder's."""
        return self.group.rows["state"]


class PrefixBeam(Search):
    """score = log-probability / L^length_penalty; L counts EOS. symbols_per_state: at most so many at one place.

    certain_after: what the best one wrote so many states ago is certain; hypotheses that differ there are dropped.
    Else two that differ in their first token, and are worth much the same, might be kept for ever.
    A token's log_probs is by how much it changed what the hypothesis was worth, with all that was lost and won in
    silence since the token before: they sum to the log-probability.
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
        if symbols_per_state < 1 or certain_after < 1:
            raise ValueError(
                f"symbols_per_state = {symbols_per_state} and certain_after = {certain_after} must be at least 1"
            )
        self.beam_size, self.n_best, self.symbols_per_state = beam_size, n_best, symbols_per_state
        self.length_penalty, self.certain_after = length_penalty, certain_after
        self.options = SearchOptions(minimum_length, maximum_length, 0)

    def start(
        self,
        decoder: Stepper,
        memory: Memory,
        prefix: Padded | None = None,
        constraints: Sequence[Constraint] = (),
    ) -> Beam:
        if len(decoder.blanks) != 1 or decoder.eos is None:
            raise SeqloomError('search.type = "prefix_beam": for decoders with a blank; expected "beam" here')
        if any(isinstance(each, NoRepeat) for each in constraints):
            raise SeqloomError('search.type = "prefix_beam": repeats cannot be forbidden here; leave no_repeat out')
        chosen = self.options.constraints(decoder, constraints)
        lengths = memory.lengths
        xp, (count,) = namespace(lengths), lengths.shape
        # The decoder's own limit is of no use: it depends on how much of the source is there, and ticks are counted.
        limit = xp.full_like(lengths, max(self.options.maximum_length or ENDLESS, self.options.minimum_length + 1))
        if prefix is not None and prefix.values.shape[1]:
            chosen.append(ForcedPrefix(prefix))
            limit = xp.maximum(limit, prefix.lengths + 1)
        begun = Constraints.begin(chosen, decoder, limit, None)
        width = self.beam_size * (2 if decoder.advances == "all" else 1)  # where all go on, silent ones and others
        owner = memory.owner(count * width)
        totals = xp.full((count, width), NEVER, dtype=xp.float32, device=lengths.device)
        totals[:, 0] = 0  # all rows of a source begin alike: expand one of them only
        nothing = xp.zeros((count, 0), dtype=lengths.dtype, device=lengths.device)
        rows = {
            "token": xp.full_like(lengths, decoder.bos),
            "state": decoder.start(memory),
            "constraints": begun.states,
            "key": xp.zeros_like(lengths),
            "count": xp.zeros_like(lengths),
            "tokens": nothing,
            "times": nothing,
            "sums": totals[:, :0],
        }
        without_rows = replace(begun, states={})
        return Beam(Group(select(rows, owner), totals), without_rows, (Written(),) * count, ({},) * count)

    def advance(self, decoder: Stepper, memory: Memory, beam: Beam) -> Beam:
        while bool((beam.group.totals > NEVER).any()):
            after = self.tick(decoder, memory, beam)
            if after is None:  # more of the source must come first
                return shortened(beam)
            beam = after
        return beam

    def tick(self, decoder: Stepper, memory: Memory, beam: Beam) -> Beam | None:
        """All that is done at one place of the source; nothing at all if a row waits for more of it."""
        group, pool = beam.group, None
        for said in range(self.symbols_per_state + 1):
            stepped = self.step(decoder, memory, beam, group)
            if stepped is None:
                return None
            group = stepped
            if decoder.advances == "all":
                group = merged(*halves(group), self.beam_size)
            found = self.continued(decoder, memory, group, said == self.symbols_per_state)
            if bool((found.ends > NEVER).any()):
                beam = replace(beam, ended=self.with_endings(beam, found.rows, found.ends))
            if decoder.advances == "all":
                pool = found.both(self.beam_size)
                break
            pool = found.silent() if pool is None else merged(*side_by_side(pool, found.silent()), self.beam_size)
            xp, grown = namespace(pool.totals), found.grown
            if not decoder.may_rise:
                # More tokens only lower a total: rows that are worth less than all that is kept will not be kept.
                hopeless = xp.amax(grown, 1) < xp.amin(pool.totals, 1)
                grown = xp.where(hopeless[:, None], NEVER, grown)
            if not bool((grown > NEVER).any()):
                break
            group = found.spoken(grown)
        assert pool is not None
        return replace(beam, group=self.decided(trimmed(pool), found.seen))

    def decided(self, group: Group, seen: Array) -> Group:
        """The group without rows that differ from the best one in what is certain by now."""
        xp, rows, (count, width) = namespace(seen), group.rows, group.totals.shape
        longest = rows["tokens"].shape[1]
        old = xp.amax(seen.reshape(count, -1), 1) - self.certain_after  # (B,)
        if not longest or not bool((old > 0).any()):
            return group
        tokens, times, sums = (rows[name].reshape(count, width, longest) for name in Written._fields)
        places, counts = xp.arange(longest, device=seen.device), rows["count"].reshape(count, width)
        best = xp.argmax(group.totals, 1)[:, None]  # (B, 1)
        ours = [part[sources(best), best] for part in (tokens, times, sums)]  # each (B, 1, L)
        certain = (ours[1] <= old[:, None, None]) & (places < counts[sources(best), best][:, :, None])
        differs = (certain & ((tokens != ours[0]) | (places >= counts[:, :, None]))).any(2)  # (B, W)
        # They may have written the same at other times: of what is certain, there is one time.
        times, sums = (xp.where(certain, one, part) for one, part in zip(ours[1:], (times, sums)))
        one_way = {"times": times.reshape(-1, longest), "sums": sums.reshape(-1, longest)}
        return Group({**rows, **one_way}, xp.where(differs, NEVER, group.totals))

    def step(self, decoder: Stepper, memory: Memory, beam: Beam, group: Group) -> Group | None:
        """The rows with their last token read, and the scores of what may follow as "scores"; None if one waits."""
        rows, xp = group.rows, namespace(group.totals)
        token, silent = rows["token"], decoder.blanks[0]
        given, state = decoder.step(token, rows["state"], memory)  # log-probabilities (rows, V)
        highest = xp.where((group.totals > NEVER).flatten(), xp.amax(given, 1), 0)
        if bool(xp.isnan(highest).any()):
            raise SeqloomError(NOT_FINITE)
        if not memory.closed and bool((highest == NEVER).any()):
            return None
        # Constraints are about outputs: they hear nothing of silence, and cannot forbid it.
        before = rows["constraints"]
        heard = replace(beam.constraints, states=before).step(token)
        heard = replace(heard, states=hold(token == silent, heard.states, before))
        scores = heard.forbid(xp.asarray(given, copy=True))
        scores[:, silent] = given[:, silent]
        return Group({**rows, "state": state, "constraints": heard.states, "scores": scores}, group.totals)

    def continued(self, decoder: Stepper, memory: Memory, group: Group, full: bool) -> Continued:
        """How the rows go on; when full, by silence alone."""
        rows, totals = {**group.rows}, group.totals
        (count, width), xp, silent = totals.shape, namespace(totals), decoder.blanks[0]
        scores = rows.pop("scores")
        quiet, ends = (totals + scores[:, symbol].reshape(count, width) for symbol in (silent, decoder.eos))
        scores[:, silent] = scores[:, decoder.eos] = NEVER
        # The best of a source are among the best of its rows.
        each = min(width, scores.shape[1])
        best, symbols = (part.reshape(count, -1) for part in topk(scores, each))  # (B, K * each)
        grown, places = topk((totals[:, :, None] + best.reshape(count, width, each)).reshape(count, -1), width)
        sources = xp.arange(count, device=totals.device)[:, None]
        if full:
            grown = xp.full_like(grown, NEVER)
        if decoder.advances == "blank":  # of both together the best; where all go on, equal outputs are found first
            least = topk(xp.concat([quiet, grown], 1), width)[0][:, -1:]
            quiet, grown = (xp.where(values < least, NEVER, values) for values in (quiet, grown))
        seen = decoder.states_read(rows["state"], memory)
        assert seen is not None, "a decoder with blanks knows how much it has read"
        return Continued(rows, cast(seen, places), quiet, ends, grown, places // each, symbols[sources, places], silent)

    def with_endings(self, beam: Beam, rows: State, ends: Array) -> tuple[dict[tuple[int, ...], Ending], ...]:
        """What has ended, and these rows: equal outputs are one."""
        ended = [dict(each) for each in beam.ended]
        values, width = as_numpy(ends), ends.shape[1]
        parts = parts_of(rows)
        for source, row in np.argwhere(values > NEVER).tolist():
            whole = beam.common[source].followed(spelled(parts, source * width + row))
            new = Ending(whole, float(values[source, row]), float(values[source, row]))
            old = ended[source].get(whole.tokens, new)
            if old is not new:
                way = max(old, new, key=lambda one: one.best)
                new = replace(way, total=float(np.logaddexp(old.total, new.total)))
            ended[source][whole.tokens] = new
        return tuple(ended)

    def score(self, ending: Ending) -> float:
        return ending.total / (len(ending.written.tokens) + 1) ** self.length_penalty

    def finish(self, decoder: Stepper, memory: Memory, beam: Beam) -> list[list[Hypothesis]]:
        """The outputs of each source that have ended, n_best of them, best first."""
        found = []
        for ended in beam.ended:
            best = sorted(ended.values(), key=lambda one: -self.score(one))[: self.n_best]
            found.append([self.hypothesis(each) for each in best])
        return found

    def hypothesis(self, ending: Ending) -> Hypothesis:
        tokens, times, sums = ending.written
        log_probs = [after - before for before, after in zip((0.0, *sums), (*sums, ending.total))]
        return Hypothesis(list(tokens), self.score(ending), log_probs, times=list(times))

    def so_far(self, beam: Beam) -> list[tuple[list[int], list[int], list[int]]]:
        """Of each source what all hypotheses begin with, and how the best one goes on."""
        totals, parts = as_numpy(beam.group.totals), parts_of(beam.group.rows)
        found = []
        for source, (common, ended) in enumerate(zip(beam.common, beam.ended)):
            live: dict[Written, float] = {}
            for row in np.flatnonzero(totals[source] > NEVER).tolist():
                one = spelled(parts, source * totals.shape[1] + row)
                same = next((each for each in live if each.tokens == one.tokens), one)
                live[same] = float(np.logaddexp(live.get(same, NEVER), totals[source, row]))
            if live:
                best = common.followed(max(live, key=lambda one: live[one]))
                others = [common.tokens + one.tokens for one in live] + list(ended)
            else:  # nothing can change any more
                best = max(ended.values(), key=self.score).written if ended else common
                others = []
            found.append(split_certain(best.tokens, others, best.times))
        return found


@dataclass(frozen=True)
class Continued:
    """How rows may go on: by silence, by one more token, to their end. Totals and all else are (B, K)."""

    rows: State
    seen: Array  # (rows,): how much of the source
    quiet: Array  # totals, by silence
    ends: Array  # totals, by EOS
    grown: Array  # totals of the best with one more token,
    parents: Array  # of which row,
    tokens: Array  # and by which token
    symbol: int  # the silent one

    def silent(self) -> Group:
        return Group(
            {**self.rows, "token": namespace(self.quiet).full_like(self.rows["token"], self.symbol)}, self.quiet
        )

    def spoken(self, totals: Array) -> Group:
        return self.chosen(self.parents, self.tokens, totals)

    def both(self, width: int) -> Group:
        """The silent ones, then the others. Live are those of the best outputs; equal ones become one later."""
        xp, keys = namespace(self.quiet), self.rows["key"].reshape(self.quiet.shape)
        own = xp.arange(keys.shape[1], device=keys.device) + 0 * self.parents
        pairs = Pairs.of(self.quiet, keys, self.grown, hashed(keys[sources(keys), self.parents], self.tokens))
        best, places = pairs.best(width)
        kept = xp.zeros_like(pairs.totals, dtype=xp.bool)
        kept[sources(keys), places] = best[:, :1] > NEVER  # places that are none name the first
        kept = kept | (kept[sources(keys), pairs.partners] & (pairs.others > NEVER))
        # A row that is not live has the state of the best.
        places = xp.where(kept, xp.arange(kept.shape[1], device=keys.device), places[:, :1])
        parents = xp.concat([own, self.parents], 1)[sources(keys), places]
        tokens = xp.concat([xp.full_like(self.tokens, self.symbol), self.tokens], 1)[sources(keys), places]
        return self.chosen(parents, tokens, xp.where(kept, pairs.totals, NEVER))

    def chosen(self, parents: Array, tokens: Array, totals: Array) -> Group:
        """The rows that follow on these parents by these tokens.  three times (B, W)"""
        xp, token = namespace(tokens), tokens.flatten()
        at = (sources(parents) * self.quiet.shape[1] + parents).flatten()
        rows = select(self.rows, at)
        each, count = xp.arange(len(token), device=token.device), rows["count"]
        for name, value in zip(Written._fields, (token, self.seen[at], totals.flatten())):
            room = xp.zeros((len(token), 1), dtype=value.dtype, device=token.device)
            wider = xp.concat([cast(rows[name], value), room], 1)  # sums are as precise as what was added
            wider[each, count] = value  # beyond its count, nobody looks at what a silent row has
            rows[name] = wider
        speaks = token != self.symbol
        key = xp.where(speaks, hashed(rows["key"], token), rows["key"])
        return Group({**rows, "token": token, "count": count + speaks, "key": key}, totals)


def trimmed(group: Group) -> Group:
    """Without columns that no row has written into."""
    rows, longest = group.rows, int(group.rows["count"].max())
    return Group({**rows, **{name: rows[name][:, :longest] for name in Written._fields}}, group.totals)


def shortened(beam: Beam) -> Beam:
    """The beam whose rows do not repeat what all of a source begin with: a stream may be without end.

    They have the same beginning if it was written at the same time; later another way to write it may be the best.
    """
    if any(beam.ended):
        return beam
    rows, totals = beam.group.rows, as_numpy(beam.group.totals)
    parts, width = parts_of(rows), totals.shape[1]
    counts = as_numpy(rows["count"]).reshape(totals.shape)
    common, cut = list(beam.common), np.zeros(totals.shape, dtype=np.int64)
    for source, live in enumerate(totals > NEVER):
        if not live.any():
            continue
        shortest = counts[source][live].min()
        columns = [part.reshape(*totals.shape, -1)[source, live, :shortest] for part in parts[:-1]]
        agreed = int(np.stack([(each == each[0]).all(0) for each in columns]).all(0).cumprod().sum())
        best = spelled(parts, source * width + int(totals[source].argmax()))
        common[source] = common[source].followed(best.first(agreed))
        cut[source] = agreed
    if not cut.any():
        return beam
    xp, drop = namespace(rows["count"]), like(rows["count"], cut.flatten())
    left = (rows["count"] - drop).clip(0, None)
    places = xp.arange(int(left.max()), device=drop.device) + drop[:, None]  # (rows, L)
    places = places.clip(None, parts[0].shape[1] - 1)
    each = xp.arange(len(drop), device=drop.device)[:, None]
    fewer = {name: rows[name][each, places] for name in Written._fields}
    return replace(beam, group=Group({**rows, **fewer, "count": left}, beam.group.totals), common=tuple(common))


def parts_of(rows: State) -> tuple[np.ndarray, ...]:
    """What the rows have written, and how much of it there is."""
    return tuple(as_numpy(rows[name]) for name in (*Written._fields, "count"))


def spelled(parts: tuple[np.ndarray, ...], row: int) -> Written:
    *columns, counts = parts
    return Written(*(tuple(each[row, : counts[row]].tolist()) for each in columns))
