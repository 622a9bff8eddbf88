"""Choices: outputs that are places of their source, of which a rule says which may follow. What such rules share."""

from abc import abstractmethod

from seqloom.arrays import Array, like, namespace
from seqloom.contracts import Constraint
from seqloom.errors import SeqloomError
from seqloom.search.constraints.every import everything
from seqloom.types import Padded, State, hold, positions_below


class Choices(Constraint):
    """One row of the source a row of the limit it starts with, in that order. `first` is the token of place 0.

    State: {"there": (rows, T) what the source has, "room": (rows,) tokens that may still come, EOS included, ...}.
    """

    rule: str  # what outputs are called
    least = 1  # elements that a source must have

    def __init__(self, source: Padded, first: int, eos: int):
        self.lengths, self.width = source.lengths, source.values.shape[1]
        self.first, self.eos = first, eos

    def start(self, rows: int, limit: Array) -> State:
        lengths = like(limit, self.lengths)
        if bool((lengths < self.least).any()):
            raise SeqloomError(
                f"{self.rule} needs {self.least} elements or more, and a source has {int(lengths.min())}"
            )
        if bool((limit < self.shortest_output(lengths)).any()):
            raise SeqloomError(
                f"{self.rule} has more tokens than an output has room for, the end included: "
                "raise search.maximum_length, decoder.length_ratio or decoder.length_offset"
            )
        no = ~everything(limit, 1)[:, 0]
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
        unbegun = {name: value for name, value in state.items() if name != "begun"}
        return {**hold(~state["begun"], after, unbegun), "begun": xp.ones_like(state["begun"])}  # BOS is no part of it

    def forbid(self, scores: Array, state: State) -> Array:
        xp = namespace(scores)
        places, end = self.allowed(state)
        others = ~everything(scores, self.first)
        others[:, self.eos] = end
        fitting = xp.concat([others, places], 1) & ~state["broken"][:, None]  # (rows, V)
        return xp.where(fitting, scores, float("-inf"))

    @abstractmethod
    def shortest_output(self, lengths: Array) -> Array | int:
        """How many tokens an output has at least, EOS included, given how many elements its source has.  (B,)"""

    @abstractmethod
    def begin(self, there: Array, limit: Array) -> State:
        """What the rule keeps, before the first place.  (rows, T), (rows,)"""

    @abstractmethod
    def after(self, place: Array, state: State) -> State:
        """The same after one more place.  (rows,)"""

    @abstractmethod
    def allowed(self, state: State) -> tuple[Array, Array]:
        """Which places may follow, and whether the end may.  (rows, T), (rows,)"""


def at(place: Array, width: int) -> Array:
    """True at one place of each row; a place below 0 is none.  (rows,) -> (rows, T)"""
    return place[:, None] == namespace(place).arange(width, device=place.device)
