"""Rings: three different places or more, then the first again. Convex hulls are rings."""

from seqloom.arrays import Array, namespace
from seqloom.search.constraints.places import PlaceRule, one_hot
from seqloom.types import State


class Ring(PlaceRule):
    rule, least = "a ring", 3

    def shortest_output(self, lengths: Array) -> int:
        return self.least + 2

    def begin(self, there: Array, limit: Array) -> State:
        xp = namespace(limit)
        return {"used": xp.zeros_like(there), "head": xp.full_like(limit, -1), "closed": ~there[:, 0]}

    def after(self, place: Array, state: State) -> State:
        xp, head = namespace(place), state["head"]
        return {
            "used": state["used"] | one_hot(place, self.width),
            "head": xp.where(head < 0, place, head),
            "closed": state["closed"] | (place == head),
        }

    def allowed(self, state: State) -> tuple[Array, Array]:
        used, closed = state["used"], state["closed"]
        room = state["room"] >= 3  # for one more, the first and the end
        closing = one_hot(state["head"], self.width) & (used.sum(1) >= self.least)[:, None]
        places = (state["there"] & ~used & room[:, None]) | closing
        return places & ~closed[:, None], closed
