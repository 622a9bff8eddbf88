"""Tokens that are known at some places of an output: the pixels of a picture that are kept."""

import numpy as np

from seqloom.arrays import NEVER, Array, like, namespace
from seqloom.contracts import Constraint
from seqloom.types import State


class Known(Constraint):
    """`tokens` (n,): the token of each place, below 0 where any may stand. Beyond them any may stand too."""

    def __init__(self, tokens: np.ndarray):
        self.tokens = tokens

    def start(self, rows: int, limit: Array) -> State:
        return {"place": namespace(limit).full_like(limit, -1)}  # the first step is BOS, which has no place

    def step(self, token: Array, state: State) -> State:
        return {"place": state["place"] + 1}

    def forbid(self, scores: Array, state: State) -> Array:
        xp, last = namespace(scores), len(self.tokens) - 1
        tokens = like(state["place"], self.tokens)
        known = xp.where(state["place"] <= last, tokens[state["place"].clip(0, last)], -1)  # (rows,)
        other = xp.arange(scores.shape[1], device=scores.device)[None] != known[:, None]
        return xp.where((known >= 0)[:, None] & other, NEVER, scores)
