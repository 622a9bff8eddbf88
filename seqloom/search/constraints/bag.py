"""Bags: an output has exactly the tokens of its source, each as often as the source, in any order.

Word re-ordering: Wiseman & Rush 2016, section 5.2.
"""

from seqloom.arrays import NEVER, Array, namespace
from seqloom.contracts import Constraint
from seqloom.errors import SeqloomError
from seqloom.search.constraints.masks import token_mask
from seqloom.types import Padded, State

USED, BROKEN = -1, -2  # in place of a token; broken: the row was given a token that its source does not have


class Bag(Constraint):
    """One row of the source per row of the limit, in the same order."""

    def __init__(self, source: Padded, eos: int):
        self.source, self.eos = source, eos

    def start(self, rows: int, limit: Array) -> State:
        source = self.source.like(limit)  # (rows, T)
        if bool((limit <= source.lengths).any()):
            raise SeqloomError(
                "a source has more tokens than its output has room for, the end included: "
                "raise search.maximum_length, decoder.length_ratio or decoder.length_offset"
            )
        xp = namespace(limit)
        return {
            "left": xp.where(source.mask, source.values, USED),
            "begun": xp.zeros_like(limit, dtype=xp.bool),  # the first step is BOS, which is no part of the output
        }

    def step(self, token: Array, state: State) -> State:
        xp, left, begun = namespace(token), state["left"], state["begun"]
        same = left == token[:, None]  # (rows, T)
        after = xp.where(same & (same.cumsum(1) == 1), USED, left)  # the first of several
        after = xp.where(same.any(1)[:, None], after, BROKEN)
        return {"left": xp.where(begun[:, None], after, left), "begun": xp.ones_like(begun)}

    def forbid(self, scores: Array, state: State) -> Array:
        xp, left, end = namespace(scores), state["left"], scores[:, self.eos]
        scores = xp.where(token_mask(left, left >= 0, scores.shape[1]), scores, NEVER)
        scores[:, self.eos] = xp.where((left == USED).all(1), end, NEVER)
        return scores
