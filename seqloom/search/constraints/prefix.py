"""A forced beginning, for searches that cannot read a prefix before they start."""

from seqloom.arrays import NEVER, Array, namespace
from seqloom.contracts import Constraint
from seqloom.search.constraints.history import append
from seqloom.search.constraints.masks import token_mask
from seqloom.types import Padded, State


class ForcedPrefix(Constraint):
    """The first tokens are given: one row of the prefix per row of the limit, in the same order."""

    def __init__(self, prefix: Padded):
        self.prefix = prefix

    def start(self, rows: int, limit: Array) -> State:
        xp, prefix = namespace(limit), self.prefix.like(limit)
        given = append(xp.where(prefix.mask, prefix.values, -1), xp.full_like(limit, -1))  # (rows, P + 1)
        return {"given": given, "count": xp.full_like(limit, -1)}  # the first step is BOS, which does not count

    def step(self, token: Array, state: State) -> State:
        return {"given": state["given"], "count": state["count"] + 1}

    def forbid(self, scores: Array, state: State) -> Array:
        xp, given = namespace(scores), state["given"]
        each = xp.arange(len(given), device=given.device)
        following = given[each, state["count"].clip(None, given.shape[1] - 1)][:, None]  # (rows, 1)
        only = token_mask(following, following >= 0, scores.shape[1])
        return xp.where((following >= 0) & ~only, NEVER, scores)
