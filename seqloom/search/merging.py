"""Merging: hypotheses with the same output become one, and their probabilities are added."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from seqloom.arrays import NEVER, Array, cast, namespace, topk
from seqloom.types import State, hold, over_tensors, select

MULTIPLIER = 6364136223846793005  # Knuth's, for a 64-bit linear congruential generator


@dataclass(frozen=True)
class Group:
    """W hypotheses per source. Only rows with finite totals are live."""

    rows: State
    # "token" (rows,): chosen last, not read yet; "state" and "constraints": of the decoder and of the search, before it
    # "key" (rows,): a hash of the output; "count" (rows,): its tokens, BOS and blanks not counted
    # "tokens", "times", "sums" (rows, L): these tokens, how much was read by then, and the total of the row by then
    totals: Array  # (B, W): log-probabilities


def extend_key(key: Array, token: Array) -> Array:
    """The key of an output with one more token: a 64-bit hash that may overflow."""
    return key * MULTIPLIER + token + 1


def source_index(places: Array) -> Array:
    """0, 1, ...  (B, W) -> (B, 1)"""
    return namespace(places).arange(len(places), device=places.device)[:, None]


@dataclass(frozen=True)
class Matches:
    """Two groups side by side, and which rows of one have the same output as a row of the other.

    Within one group all outputs differ, so that a row has one partner at most.
    """

    totals: Array  # (B, W): those of the first group, then those of the second
    partner_totals: Array  # (B, W): -inf without a partner
    partners: Array  # (B, W): the place of the partner, if there is one
    better: Array  # (B, W): than its partner

    @classmethod
    def find(cls, old: Array, old_keys: Array, new: Array, new_keys: Array) -> Matches:
        """From totals and keys.  twice (B, W1), twice (B, W2)"""
        xp, width = namespace(old), old.shape[1]
        equal = old_keys[:, :, None] == new_keys[:, None, :]  # (B, W1, W2)
        equal = equal & (old > NEVER)[:, :, None] & (new > NEVER)[:, None, :]
        of_old = xp.amax(xp.where(equal, new[:, None, :], NEVER), 2)  # (B, W1)
        of_new = xp.amax(xp.where(equal, old[:, :, None], NEVER), 1)  # (B, W2)
        places = xp.arange(width + new.shape[1], device=old.device)
        partners = [width + (equal * places[: new.shape[1]]).sum(2), (equal * places[:width, None]).sum(1)]
        return cls(
            totals=xp.concat([old, new], 1),
            partner_totals=xp.concat([of_old, of_new], 1),
            partners=xp.concat(partners, 1),
            better=xp.concat([old >= of_old, new > of_new], 1),
        )

    def best(self, width: int) -> tuple[Array, Array]:
        """The best outputs: their totals, partners added, and their places.  twice (B, width)"""
        xp = namespace(self.totals)
        sums = xp.logaddexp(self.totals, self.partner_totals)
        totals, places = topk(xp.where(self.better, sums, NEVER), width)
        return totals, xp.where(totals > NEVER, places, places[:, :1])  # rows that are not live: the best once more


Take = Callable[[Callable[[State], State], Array], State]  # (which part of the rows, at which places (B, W)) -> part


def merge(old: Group, new: Group, width: int) -> Group:
    """The best of two groups."""
    (_, ours), theirs = old.totals.shape, new.totals.shape[1]
    old_keys, new_keys = (each.rows["key"].reshape(each.totals.shape) for each in (old, new))

    def take(part: Callable[[State], State], places: Array) -> State:
        from_old = places < ours
        at_old = source_index(places) * ours + places.clip(None, ours - 1)
        at_new = source_index(places) * theirs + (places - ours).clip(0, None)
        before, after = select(part(old.rows), at_old.flatten()), select(part(new.rows), at_new.flatten())
        return hold(from_old.flatten(), after, before)

    return best_merged(Matches.find(old.totals, old_keys, new.totals, new_keys), take, width)


def merge_halves(group: Group, width: int) -> Group:
    """The best of the first and the second half of each source's rows."""
    totals, keys = group.totals, group.rows["key"].reshape(group.totals.shape)
    whole, middle = totals.shape[1], totals.shape[1] // 2

    def take(part: Callable[[State], State], places: Array) -> State:
        return select(part(group.rows), (source_index(places) * whole + places).flatten())

    matches = Matches.find(totals[:, :middle], keys[:, :middle], totals[:, middle:], keys[:, middle:])
    return best_merged(matches, take, width)


def best_merged(matches: Matches, take: Take, width: int) -> Group:
    """The best outputs of two groups. What both have is one row, with the state of the better one.

    Probabilities in a state ("mixture") and of the next token ("scores") are the mean of both, weighted by totals.
    """
    totals, places = matches.best(width)
    xp, rows = namespace(totals), take(lambda rows: rows, places)
    whole = xp.where(totals > NEVER, totals, 0)
    ours, theirs = (  # the log of their shares in the whole
        (part[source_index(places), places] - whole).flatten() for part in (matches.totals, matches.partner_totals)
    )
    partners = matches.partners[source_index(places), places]
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
