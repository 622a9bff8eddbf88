"""How the hypotheses of a prefix beam search go on within a frame."""

from __future__ import annotations

from dataclasses import dataclass

from seqloom.arrays import NEVER, Array, cast, namespace
from seqloom.search.merging import Group, Matches, extend_key, source_index
from seqloom.search.transcript import Transcript
from seqloom.types import State, select


@dataclass(frozen=True)
class Continuations:
    """Rows may go on by a blank, by one more token, or end."""

    rows: State
    read: Array  # (rows,): how many states of the source
    blanks: Array  # (B, K): totals of the rows with a blank
    ends: Array  # (B, K): totals of the rows with EOS
    totals: Array  # (B, K): of the best continuations with one more token,
    parents: Array  # (B, K): of which row,
    tokens: Array  # (B, K): and by which token
    blank: int

    def with_blank(self) -> Group:
        """All rows, each with a blank."""
        token = namespace(self.blanks).full_like(self.rows["token"], self.blank)
        return Group({**self.rows, "token": token}, self.blanks)

    def with_token(self, totals: Array) -> Group:
        """The best continuations with one more token; some totals may have been dropped since.  (B, K)"""
        return self.take(self.parents, self.tokens, totals)

    def with_either(self, width: int) -> Group:
        """Both, blanks first. Live are the `width` best outputs per source; equal ones are merged later.  (B, 2 K)"""
        xp, keys = namespace(self.blanks), self.rows["key"].reshape(self.blanks.shape)
        own = xp.arange(keys.shape[1], device=keys.device) + 0 * self.parents
        longer = extend_key(keys[source_index(keys), self.parents], self.tokens)
        matches = Matches.find(self.blanks, keys, self.totals, longer)
        best, places = matches.best(width)
        kept = xp.zeros_like(matches.totals, dtype=xp.bool)
        kept[source_index(keys), places] = best[:, :1] > NEVER  # rows that are not live have the place of the best
        kept = kept | (kept[source_index(keys), matches.partners] & (matches.partner_totals > NEVER))
        # A row that is not live has the state of the best.
        places = xp.where(kept, xp.arange(kept.shape[1], device=keys.device), places[:, :1])
        parents = xp.concat([own, self.parents], 1)[source_index(keys), places]
        tokens = xp.concat([xp.full_like(self.tokens, self.blank), self.tokens], 1)[source_index(keys), places]
        return self.take(parents, tokens, xp.where(kept, matches.totals, NEVER))

    def take(self, parents: Array, tokens: Array, totals: Array) -> Group:
        """These parents with these tokens appended.  three times (B, W)"""
        xp, token = namespace(tokens), tokens.flatten()
        at = (source_index(parents) * self.blanks.shape[1] + parents).flatten()
        rows = select(self.rows, at)
        each, count = xp.arange(len(token), device=token.device), rows["count"]
        for name, value in zip(Transcript._fields, (token, self.read[at], totals.flatten())):
            room = xp.zeros((len(token), 1), dtype=value.dtype, device=token.device)
            wider = xp.concat([cast(rows[name], value), room], 1)  # sums are as precise as what was added
            wider[each, count] = value  # with a blank, this place stays beyond the count
            rows[name] = wider
        writes = token != self.blank
        key = xp.where(writes, extend_key(rows["key"], token), rows["key"])
        return Group({**rows, "token": token, "count": count + writes, "key": key}, totals)
