"""A minimum length. The maximum is in `combined.py`: all constraints must know it."""

from seqloom.arrays import Array, namespace
from seqloom.contracts import Constraint
from seqloom.search.constraints.masks import forbid_token
from seqloom.types import State


class MinimumLength(Constraint):
    """No EOS before so many tokens; EOS itself is not counted."""

    def __init__(self, length: int, eos: int):
        self.length, self.eos = length, eos

    def start(self, rows: int, limit: Array) -> State:
        return {"count": namespace(limit).full_like(limit, -1)}  # the first step is BOS, which does not count

    def step(self, token: Array, state: State) -> State:
        return {"count": state["count"] + 1}

    def forbid(self, scores: Array, state: State) -> Array:
        return forbid_token(scores, self.eos, state["count"] < self.length)
