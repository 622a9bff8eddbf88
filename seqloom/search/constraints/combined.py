"""All constraints of a search as one, and the maximum length with them.

All are one mechanism, the `Constraint`: a state that each hypothesis carries, and the next tokens that it forbids.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from seqloom.arrays import NEVER, Array, maybe_any, namespace
from seqloom.contracts import Constraint, Stepper
from seqloom.types import Padded, State, hold, select


@dataclass(frozen=True)
class Constraints:
    """Several constraints and their states. At the limit only EOS is allowed, if the decoder has one."""

    constraints: tuple[Constraint, ...]
    states: State  # {"0": state of the first, ..., "limit": (rows,), "count": (rows,)}
    eos: int | None

    @classmethod
    def begin(
        cls,
        constraints: Sequence[Constraint],
        decoder: Stepper,
        limit: Array,
        prefix: Padded | None,
    ) -> Constraints:
        """The states before the first free token: after the forced prefix, if there is one."""
        states: State = {str(number): each.start(len(limit), limit) for number, each in enumerate(constraints)}
        xp = namespace(limit)
        states |= {"limit": limit, "count": xp.zeros_like(limit)}
        begun = cls(tuple(constraints), states, decoder.eos)
        if prefix is None:
            return begun
        inputs = xp.concat([xp.full_like(limit, decoder.bos)[:, None], prefix.values], 1)  # (B, 1 + P)
        rows = xp.arange(len(limit), device=limit.device)
        longest = prefix.values.shape[1]
        for place in range(longest):  # shorter prefixes begin later, so that there is no gap within a history
            own = place - (longest - prefix.lengths)
            token = inputs[rows, own.clip(0, None)]
            begun = cls(begun.constraints, hold(own < 0, begun.step(token).states, begun.states), begun.eos)
        return begun

    def step(self, token: Array) -> Constraints:
        """After one more token."""
        states: State = {"limit": self.states["limit"], "count": self.states["count"] + 1}
        for number, constraint in enumerate(self.constraints):
            states[str(number)] = constraint.step(token, self.states[str(number)])
        return Constraints(self.constraints, states, self.eos)

    @property
    def last(self) -> Array:
        """Whether the next token is the last there is room for.  (rows,)"""
        return self.states["count"] >= self.states["limit"]

    def forbid(self, scores: Array) -> Array:
        """The scores, -inf where a token may not follow; overwritten in place.  (rows, V)"""
        for number, constraint in enumerate(self.constraints):
            scores = constraint.forbid(scores, self.states[str(number)])
        if self.eos is not None and maybe_any(self.last):
            xp, end = namespace(scores), scores[:, self.eos]
            scores = xp.where(self.last[:, None], NEVER, scores)
            scores[:, self.eos] = end
        return scores

    def grown(self, limit: Array) -> Constraints:
        """With a new limit, since there is more of the source now.  (rows,)"""
        more = limit - self.states["limit"]
        states: State = {"limit": limit, "count": self.states["count"]}
        for number, constraint in enumerate(self.constraints):
            states[str(number)] = constraint.grown(self.states[str(number)], more)
        return Constraints(self.constraints, states, self.eos)

    def select(self, rows: Array) -> Constraints:
        return Constraints(self.constraints, select(self.states, rows), self.eos)
