"""No repeated n-grams."""

from seqloom.arrays import NEVER, Array, namespace
from seqloom.contracts import Constraint
from seqloom.search.constraints.history import append, no_tokens
from seqloom.search.constraints.masks import token_mask
from seqloom.types import State


class NoRepeat(Constraint):
    """No n-gram twice. Paulus, Xiong & Socher 2018, section 2.5, for n = 3."""

    def __init__(self, length: int):
        self.length = length

    def start(self, rows: int, limit: Array) -> State:
        xp = namespace(limit)
        return {
            "history": no_tokens(limit, 0),
            "begun": xp.zeros_like(limit, dtype=xp.bool),  # the first step is BOS, which is no part of the output
        }

    def step(self, token: Array, state: State) -> State:
        xp, begun = namespace(token), state["begun"]
        before = xp.where(begun[:, None], state["history"], -1)  # rows that begin later have places without a token
        history = append(before, xp.where(begun, token, -1))  # (rows, t)
        return {"history": history, "begun": xp.ones_like(begun)}

    def forbid(self, scores: Array, state: State) -> Array:
        xp, history = namespace(scores), state["history"]
        count = history.shape[1] - self.length + 1  # of n-grams
        if count < 1:
            return scores
        columns = [history[:, place : place + count] for place in range(self.length)]  # n times (rows, count)
        repeats = columns[-1] >= 0
        for place, tokens in enumerate(columns[:-1]):
            repeats = repeats & (tokens == history[:, count + place, None])
        return xp.where(token_mask(columns[-1], repeats, scores.shape[1]), NEVER, scores)
