"""Required phrases."""

from collections.abc import Sequence

from seqloom.arrays import NEVER, Array, like, namespace
from seqloom.contracts import Constraint
from seqloom.search.constraints.history import append, ends_with, no_tokens
from seqloom.search.constraints.masks import forbid_token, token_mask
from seqloom.types import State


class Required(Constraint):
    """Each requirement at least once: no EOS before, and forced once the room would not suffice later.

    A requirement is a list of alternative phrases: a word may be spelled in several ways.
    """

    def __init__(self, requirements: Sequence[Sequence[Sequence[int]]], eos: int):
        self.requirements = [[list(phrase) for phrase in phrases] for phrases in requirements]
        self.longest = max(len(phrase) for phrases in self.requirements for phrase in phrases)
        self.eos = eos

    def start(self, rows: int, limit: Array) -> State:
        xp = namespace(limit)
        return {
            "room": limit,  # tokens that may still come, EOS included
            "recent": no_tokens(limit, self.longest),
            "done": xp.zeros((len(limit), len(self.requirements)), dtype=xp.bool, device=limit.device),
            "begun": xp.zeros_like(limit, dtype=xp.bool),  # the first step is BOS, which is no part of the output
        }

    def step(self, token: Array, state: State) -> State:
        xp = namespace(token)
        recent = append(state["recent"][:, 1:], xp.where(state["begun"], token, -1))
        met = [xp.stack([ends_with(recent, phrase) for phrase in phrases]).any(0) for phrases in self.requirements]
        return {
            "room": xp.where(state["begun"], state["room"] - 1, state["room"]),
            "recent": recent,
            "done": state["done"] | xp.stack(met, 1),
            "begun": xp.ones_like(state["begun"]),
        }

    def forbid(self, scores: Array, state: State) -> Array:
        xp = namespace(scores)
        room, recent, done = (state[name] for name in ("room", "recent", "done"))
        scores = forbid_token(scores, self.eos, ~done.all(1))
        # A free token must leave room for all that is missing, from its beginning, and for EOS.
        shortest = like(room, [min(map(len, phrases)) for phrases in self.requirements])
        missing = (shortest * ~done).sum(1)  # (rows,)
        tight = (room - 2 < missing) & ~done.all(1)
        following, fitting = [], []
        for number, phrases in enumerate(self.requirements):
            for phrase in phrases:
                tokens = like(room, phrase)
                for reached in (xp.zeros_like(room), self.matched_length(recent, phrase)):
                    needed = missing - shortest[number] + len(phrase) - reached - 1
                    following.append(tokens[reached])
                    fitting.append(~done[:, number] & (needed <= room - 2))
        only = token_mask(xp.stack(following, 1), xp.stack(fitting, 1), scores.shape[1])
        return xp.where(tight[:, None] & ~only, NEVER, scores)

    def grown(self, state: State, more: Array) -> State:
        return {**state, "room": state["room"] + more}

    def matched_length(self, recent: Array, phrase: list[int]) -> Array:
        """How many tokens of the phrase's beginning the output ends with.  (rows,)"""
        xp = namespace(recent)
        longest = xp.zeros_like(recent[:, 0])
        for count in range(1, len(phrase)):
            longest = xp.where(ends_with(recent, phrase[:count]), count, longest)
        return longest
