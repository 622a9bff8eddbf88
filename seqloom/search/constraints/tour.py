"""Tours: from the first place through every other one and back. Vinyals, Fortunato & Jaitly 2015, section 3.3."""

from seqloom.arrays import Array, namespace
from seqloom.search.constraints.places import PlaceRule, one_hot
from seqloom.types import State


class Tour(PlaceRule):
    rule = "a tour"

    def shortest_output(self, lengths: Array) -> Array:
        return lengths + 2

    def begin(self, there: Array, limit: Array) -> State:
        return {"left": there, "home": ~there[:, 0]}  # places not visited yet; whether it has returned

    def after(self, place: Array, state: State) -> State:
        return {"left": state["left"] & ~one_hot(place, self.width), "home": ~state["left"].any(1)}

    def allowed(self, state: State) -> tuple[Array, Array]:
        left, there, home = state["left"], state["there"], state["home"]
        at_ends = (left == there).all(1) | ~left.any(1)  # before the first place, or after the last
        only_first = one_hot(namespace(at_ends).where(at_ends, 0, -1), self.width)
        places = namespace(left).where(at_ends[:, None], only_first, left)
        return places & ~home[:, None], home
