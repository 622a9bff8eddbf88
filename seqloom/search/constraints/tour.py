"""Tours: from the first place through every other one and back to it. Vinyals, Fortunato & Jaitly 2015, section 3.3."""

from seqloom.arrays import Array, namespace
from seqloom.search.constraints.places import Choices, at
from seqloom.types import State


class Tour(Choices):
    rule = "a tour"

    def shortest_output(self, lengths: Array) -> Array:
        return lengths + 2

    def begin(self, there: Array, limit: Array) -> State:
        return {"left": there, "home": ~there[:, 0]}  # not visited yet; whether it has returned

    def after(self, place: Array, state: State) -> State:
        return {"left": state["left"] & ~at(place, self.width), "home": ~state["left"].any(1)}

    def allowed(self, state: State) -> tuple[Array, Array]:
        left, there, home = state["left"], state["there"], state["home"]
        outset = (left == there).all(1) | ~left.any(1)  # before the first place, or after the last
        only_first = at(namespace(outset).where(outset, 0, -1), self.width)
        places = namespace(left).where(outset[:, None], only_first, left)
        return places & ~home[:, None], home
