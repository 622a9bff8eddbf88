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
        return {"history": no_tokens(limit, 0)}

    def step(self, token: Array, state: State) -> State:
        return {"history": append(state["history"], token)}  # (rows, t), BOS first

    def forbid(self, scores: Array, state: State) -> Array:
        xp, history = namespace(scores), state["history"]
        count = history.shape[1] - self.length + 1  # of n-grams
        if count < 1:
            return scores
        columns = [history[:, place : place + count] for place in range(self.length)]  # n times (rows, count)
        repeats = xp.ones((len(history), count), dtype=xp.bool, device=history.device)
        for place, tokens in enumerate(columns[:-1]):
            repeats = repeats & (tokens == history[:, count + place, None])
        return xp.where(token_mask(columns[-1], repeats, scores.shape[1]), NEVER, scores)
