"""Hypotheses that have written the same become one: how a prefix beam search adds up the ways to write an output."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from seqloom.arrays import Array, cast, namespace, topk
from seqloom.types import State, hold, over_tensors, select

NEVER = float("-inf")
MULTIPLIER = 6364136223846793005  # Knuth's, of a generator of 64 bits


@dataclass(frozen=True)
class Group:
    """Some rows a source. None but the live ones, whose total is not -inf, means anything."""

    rows: State
    # "token" (rows,): chosen last and not yet read; "state": the decoder's, before that; "constraints": theirs, too
    # "key" (rows,): a hash that tells outputs apart; "count" (rows,): how many tokens, BOS and silence aside
    # "tokens", "times", "sums" (rows, L): these tokens, how much was read by then, and what the row was worth
    totals: Array  # (B, W): log-probabilities


def hashed(key: Array, token: Array) -> Array:
    """The key of an output with one more token: a hash of 64 bits, whose overflow is meant."""
    return key * MULTIPLIER + token + 1


def sources(places: Array) -> Array:
    """0, 1, ...  (B, W) -> (B, 1)"""
    return namespace(places).arange(len(places), device=places.device)[:, None]


@dataclass(frozen=True)
class Pairs:
    """Two groups, neither with equal outputs, side by side: who has written the same as one of the other group."""

    totals: Array  # (B, W): first the rows of the one, then those of the other
    others: Array  # (B, W): what the partner is worth; -inf without one
    partners: Array  # (B, W): where it stands, if there is one
    better: Array  # (B, W): than its partner

    @classmethod
    def of(cls, old: Array, old_keys: Array, new: Array, new_keys: Array) -> Pairs:
        """From totals and keys.  twice (B, ours), twice (B, theirs)"""
        xp, ours = namespace(old), old.shape[1]
        equal = old_keys[:, :, None] == new_keys[:, None, :]  # (B, ours, theirs)
        equal = equal & (old > NEVER)[:, :, None] & (new > NEVER)[:, None, :]
        of_old = xp.amax(xp.where(equal, new[:, None, :], NEVER), 2)  # (B, ours)
        of_new = xp.amax(xp.where(equal, old[:, :, None], NEVER), 1)  # (B, theirs)
        places = xp.arange(ours + new.shape[1], device=old.device)
        at = [ours + (equal * places[: new.shape[1]]).sum(2), (equal * places[:ours, None]).sum(1)]
        return cls(
            totals=xp.concat([old, new], 1),
            others=xp.concat([of_old, of_new], 1),
            partners=xp.concat(at, 1),
            better=xp.concat([old >= of_old, new > of_new], 1),
        )

    def best(self, width: int) -> tuple[Array, Array]:
        """The best outputs: their probabilities, partners added, and where they stand.  twice (B, width)"""
        xp = namespace(self.totals)
        totals, places = topk(xp.where(self.better, xp.logaddexp(self.totals, self.others), NEVER), width)
        return totals, xp.where(totals > NEVER, places, places[:, :1])  # where there is none, the best once more


Take = Callable[[Callable[[State], State], Array], State]  # a part of all rows, and of which it is wanted (B, W)


def side_by_side(old: Group, new: Group) -> tuple[Pairs, Take]:
    """Two groups for `merged`."""
    (_, ours), theirs = old.totals.shape, new.totals.shape[1]
    old_keys, new_keys = (each.rows["key"].reshape(each.totals.shape) for each in (old, new))

    def take(part: Callable[[State], State], places: Array) -> State:
        from_old = places < ours
        at_old = sources(places) * ours + places.clip(None, ours - 1)
        at_new = sources(places) * theirs + (places - ours).clip(0, None)
        before, after = select(part(old.rows), at_old.flatten()), select(part(new.rows), at_new.flatten())
        return hold(from_old.flatten(), after, before)

    return Pairs.of(old.totals, old_keys, new.totals, new_keys), take


def halves(group: Group) -> tuple[Pairs, Take]:
    """The halves of each source's rows for `merged`."""
    width, totals, keys = group.totals.shape[1], group.totals, group.rows["key"].reshape(group.totals.shape)
    middle = width // 2

    def take(part: Callable[[State], State], places: Array) -> State:
        return select(part(group.rows), (sources(places) * width + places).flatten())

    return Pairs.of(totals[:, :middle], keys[:, :middle], totals[:, middle:], keys[:, middle:]), take


def merged(pairs: Pairs, take: Take, width: int) -> Group:
    """The best of two groups: what both have written is one row, with the state of the better one.

    What is a probability, in a state ("mixture") or of the next token ("scores"), is the mean of both.
    """
    totals, places = pairs.best(width)
    xp, rows = namespace(totals), take(lambda rows: rows, places)
    whole = xp.where(totals > NEVER, totals, 0)
    ours, theirs = (  # log of how much of the whole
        (part[sources(places), places] - whole).flatten() for part in (pairs.totals, pairs.others)
    )
    partners = pairs.partners[sources(places), places]
    if "mixture" in rows["state"]:

        def mean(one: Array, other: Array) -> Array:
            share = cast(xp.exp(theirs), one).reshape(-1, *[1] * (one.ndim - 1))
            return one + share * (other - one)

        state, other = rows["state"], take(lambda rows: rows["state"]["mixture"], partners)
        rows = {**rows, "state": {**state, "mixture": over_tensors(mean, state["mixture"], other)}}
    if "scores" in rows:
        other = take(lambda rows: {"scores": rows["scores"]}, partners)["scores"]
        rows = {**rows, "scores": xp.logaddexp(rows["scores"] + ours[:, None], other + theirs[:, None])}
    return Group(rows, totals)
