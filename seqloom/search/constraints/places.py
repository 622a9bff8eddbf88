"""Rules over outputs that are places of their source: which place may follow, and where an output may end."""

from abc import abstractmethod

from seqloom.arrays import NEVER, Array, like, namespace
from seqloom.contracts import Constraint
from seqloom.errors import SeqloomError
from seqloom.types import Padded, State, hold, positions_below


class PlaceRule(Constraint):
    """What tours, rings and triangles share. One row of the source per row of the limit, in the same order.

    `first` is the token of place 0. State: {"there": (rows, T) which places the source has, "room": (rows,) tokens that
    may still come, EOS included, "begun", "broken": (rows,), and what the rule keeps}.
    """

    rule: str  # what an output is called in errors
    least = 1  # elements that a source must have

    def __init__(self, source: Padded, first: int, eos: int):
        self.lengths, self.width = source.lengths, source.values.shape[1]
        self.first, self.eos = first, eos

    def start(self, rows: int, limit: Array) -> State:
        xp, lengths = namespace(limit), like(limit, self.lengths)
        if bool((lengths < self.least).any()):
            raise SeqloomError(
                f"{self.rule} needs {self.least} elements or more, and a source has {int(lengths.min())}"
            )
        if bool((limit < self.shortest_output(lengths)).any()):
            raise SeqloomError(
                f"{self.rule} has more tokens than an output has room for, the end included: "
                "raise search.maximum_length, decoder.length_ratio or decoder.length_offset"
            )
        no = xp.zeros_like(limit, dtype=xp.bool)
        there = positions_below(lengths, self.width)  # (rows, T)
        return {"there": there, "room": limit, "begun": no, "broken": no, **self.begin(there, limit)}

    def step(self, token: Array, state: State) -> State:
        xp, place = namespace(token), token - self.first
        chosen = xp.where((place >= 0) & (place < self.width), place, 0)
        each = xp.arange(len(token), device=token.device)
        fits = self.allowed(state)[0][each, chosen] & (chosen == place)
        after = {
            "there": state["there"],
            "room": state["room"] - 1,
            "broken": state["broken"] | ~fits,
            **self.after(chosen, state),
        }
        # The first step is BOS, which is no part of the output.
        before = {name: value for name, value in state.items() if name != "begun"}
        return {**hold(~state["begun"], after, before), "begun": xp.ones_like(state["begun"])}

    def forbid(self, scores: Array, state: State) -> Array:
        xp = namespace(scores)
        places, end = self.allowed(state)
        others = xp.zeros((len(scores), self.first), dtype=xp.bool, device=scores.device)
        others[:, self.eos] = end
        fitting = xp.concat([others, places], 1) & ~state["broken"][:, None]  # (rows, V)
        return xp.where(fitting, scores, NEVER)

    @abstractmethod
    def shortest_output(self, lengths: Array) -> Array | int:
        """How many tokens an output has at least, EOS included, given the lengths of the sources.  (B,)"""

    @abstractmethod
    def begin(self, there: Array, limit: Array) -> State:
        """What the rule keeps, before the first place.  (rows, T), (rows,)"""

    @abstractmethod
    def after(self, place: Array, state: State) -> State:
        """The same after one more place.  (rows,)"""

    @abstractmethod
    def allowed(self, state: State) -> tuple[Array, Array]:
        """Which places may follow, and whether the end may.  (rows, T), (rows,)"""


def one_hot(place: Array, width: int) -> Array:
    """True at one place of each row; nowhere if it is below 0.  (rows,) -> (rows, T)"""
    return place[:, None] == namespace(place).arange(width, device=place.device)
