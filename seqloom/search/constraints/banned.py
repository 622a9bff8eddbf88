"""Banned tokens and phrases."""

from collections.abc import Sequence

from seqloom.arrays import NEVER, Array
from seqloom.contracts import Constraint
from seqloom.search.constraints.history import append, ends_with, no_tokens
from seqloom.search.constraints.masks import forbid_token
from seqloom.types import State


class Banned(Constraint):
    """Single tokens never come; of a longer phrase the last token never follows the others."""

    def __init__(self, phrases: Sequence[Sequence[int]]):
        self.tokens = [phrase[0] for phrase in phrases if len(phrase) == 1]
        self.phrases = [list(phrase) for phrase in phrases if len(phrase) > 1]
        self.longest = max(map(len, self.phrases), default=1)

    def start(self, rows: int, limit: Array) -> State:
        return {"recent": no_tokens(limit, self.longest)} if self.phrases else {}

    def step(self, token: Array, state: State) -> State:
        return {"recent": append(state["recent"][:, 1:], token)} if self.phrases else {}

    def forbid(self, scores: Array, state: State) -> Array:
        for token in self.tokens:
            if token < scores.shape[1]:  # tokens may be places of the source, and no source of the batch has this one
                scores[:, token] = NEVER
        for phrase in self.phrases:
            scores = forbid_token(scores, phrase[-1], ends_with(state["recent"], phrase[:-1]))
        return scores
