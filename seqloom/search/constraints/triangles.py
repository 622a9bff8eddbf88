"""Triangles: triples of ascending places, no triple twice; an output ends after a complete triple."""

from seqloom.arrays import Array, cast, namespace
from seqloom.search.constraints.history import append, no_tokens
from seqloom.search.constraints.masks import token_mask
from seqloom.search.constraints.places import PlaceRule
from seqloom.types import State


class Triangles(PlaceRule):
    """The triple a < b < c has the number 1 + (a T + b) T + c; 0 stands for a token that completed none."""

    rule, least = "a triangle", 3

    def shortest_output(self, lengths: Array) -> int:
        return 4

    def begin(self, there: Array, limit: Array) -> State:
        none = namespace(limit).full_like(limit, -1)
        return {"seen": no_tokens(limit, 0), "lowest": none, "middle": none}

    def after(self, place: Array, state: State) -> State:
        xp, lowest, middle = namespace(place), state["lowest"], state["middle"]
        number = 1 + (lowest * self.width + middle) * self.width + place
        ends = middle >= 0
        return {
            "seen": append(state["seen"], xp.where(ends, number, 0)),  # (rows, t)
            "lowest": xp.where(ends, -1, xp.where(lowest < 0, place, lowest)),
            "middle": xp.where(ends | (lowest < 0), -1, place),
        }

    def allowed(self, state: State) -> tuple[Array, Array]:
        xp, seen, lowest, middle = namespace(state["seen"]), state["seen"], state["lowest"], state["middle"]
        there, width, known = state["there"], self.width, seen > 0
        pairs, thirds = (seen - 1) // width, (seen - 1) % width  # a T + b, and c
        above = there.sum(1)[:, None] - 1 - xp.arange(width, device=seen.device)  # places above each (rows, T)
        beyond = xp.where(middle >= 0, middle, lowest)[:, None] < xp.arange(width, device=seen.device)
        # A place may begin or continue a triple as long as some completion of it is not taken.
        begins = above * (above - 1) // 2 > self.occurrences(pairs // width, known)
        ours = known & (pairs // width == lowest[:, None])
        follows = above > self.occurrences(pairs % width, ours)
        ours = known & (pairs == (lowest * width + middle)[:, None])
        completes = ~token_mask(thirds, ours, width)
        room = (state["room"] >= 4)[:, None]
        first, second = (lowest < 0)[:, None], (middle < 0)[:, None]
        places = xp.where(first, begins & room, beyond & xp.where(second, follows, completes))
        return places & there, known.any(1) & (lowest < 0)

    def occurrences(self, places: Array, chosen: Array) -> Array:
        """How often each place is among the chosen ones.  twice (rows, t) -> (rows, T)"""
        xp = namespace(places)
        same = places[:, :, None] == xp.arange(self.width, device=places.device)
        return cast((same & chosen[:, :, None]).sum(1), places)
