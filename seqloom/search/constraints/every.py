"""Which tokens may follow: minimum length, banned and required tokens, no repeated n-grams.

All are one mechanism, the `Constraint`: a state a hypothesis carries, and which next tokens it forbids.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from seqloom.arrays import Array, like, namespace, perhaps
from seqloom.contracts import Constraint, Stepper
from seqloom.types import Padded, State, hold, select


class MinimumLength(Constraint):
    """No end before so many tokens (EOS not counted)."""

    def __init__(self, length: int, eos: int):
        self.length, self.eos = length, eos

    def start(self, rows: int, limit: Array) -> State:
        return {"count": namespace(limit).full_like(limit, -1)}  # the BOS that comes first is no token of the output

    def step(self, token: Array, state: State) -> State:
        return {"count": state["count"] + 1}

    def forbid(self, scores: Array, state: State) -> Array:
        return without(scores, self.eos, state["count"] < self.length)


class Banned(Constraint):
    """These tokens never, and these phrases never to their end."""

    def __init__(self, phrases: Sequence[Sequence[int]]):
        self.symbols = [phrase[0] for phrase in phrases if len(phrase) == 1]
        self.phrases = [list(phrase) for phrase in phrases if len(phrase) > 1]
        self.longest = max(map(len, self.phrases), default=1)

    def start(self, rows: int, limit: Array) -> State:
        return {"recent": nothing(limit, self.longest)} if self.phrases else {}

    def step(self, token: Array, state: State) -> State:
        return {"recent": followed(state["recent"][:, 1:], token)} if self.phrases else {}

    def forbid(self, scores: Array, state: State) -> Array:
        for symbol in self.symbols:
            if symbol < scores.shape[1]:  # a place that no source of the batch has needs no ban
                scores[:, symbol] = float("-inf")
        for phrase in self.phrases:
            scores = without(scores, phrase[-1], ends_with(state["recent"], phrase[:-1]))
        return scores


class Beginning(Constraint):
    """The first tokens are given: a row of the prefix for a row of the limit it starts with, in that order."""

    def __init__(self, prefix: Padded):
        self.prefix = prefix

    def start(self, rows: int, limit: Array) -> State:
        xp, prefix = namespace(limit), self.prefix.like(limit)
        given = followed(xp.where(prefix.mask, prefix.values, -1), xp.full_like(limit, -1))  # (rows, P + 1)
        return {"given": given, "count": xp.full_like(limit, -1)}  # the BOS that comes first is no token of the output

    def step(self, token: Array, state: State) -> State:
        return {"given": state["given"], "count": state["count"] + 1}

    def forbid(self, scores: Array, state: State) -> Array:
        xp, given = namespace(scores), state["given"]
        each = xp.arange(len(given), device=given.device)
        following = given[each, state["count"].clip(None, given.shape[1] - 1)][:, None]  # (rows, 1)
        only = marked(following, following >= 0, scores.shape[1])
        return xp.where((following >= 0) & ~only, float("-inf"), scores)


class NoRepeat(Constraint):
    """No n-gram twice. Paulus, Xiong & Socher 2018, section 2.5, for n = 3."""

    def __init__(self, length: int):
        self.length = length

    def start(self, rows: int, limit: Array) -> State:
        return {"history": nothing(limit, 0)}

    def step(self, token: Array, state: State) -> State:
        return {"history": followed(state["history"], token)}  # (rows, t), BOS first

    def forbid(self, scores: Array, state: State) -> Array:
        history = state["history"]
        count = history.shape[1] - self.length + 1  # of n-grams
        if count < 1:
            return scores
        places = [history[:, place : place + count] for place in range(self.length)]  # n times (rows, count)
        repeats = everything(history, count)
        for place, symbols in enumerate(places[:-1]):
            repeats = repeats & (symbols == history[:, count + place, None])
        repeated = marked(places[-1], repeats, scores.shape[1])
        return namespace(scores).where(repeated, float("-inf"), scores)


class Required(Constraint):
    """Each of these at least once: no end before, and forced when the room would not suffice later.

    A requirement is a list of phrases of which one is enough: a word may be spelled in several ways.
    """

    def __init__(self, requirements: Sequence[Sequence[Sequence[int]]], eos: int):
        self.requirements = [[list(phrase) for phrase in phrases] for phrases in requirements]
        self.longest = max(len(phrase) for phrases in self.requirements for phrase in phrases)
        self.eos = eos

    def start(self, rows: int, limit: Array) -> State:
        return {
            "room": limit,  # tokens that may still come, EOS included; the BOS that comes first takes none
            "recent": nothing(limit, self.longest),
            "done": ~everything(limit, len(self.requirements)),
            "begun": ~everything(limit, 1)[:, 0],
        }

    def step(self, token: Array, state: State) -> State:
        xp = namespace(token)
        output = xp.where(state["begun"], token, -1)  # BOS is no part of it
        recent = followed(state["recent"][:, 1:], output)
        said = [xp.stack([ends_with(recent, phrase) for phrase in phrases]).any(0) for phrases in self.requirements]
        return {
            "room": xp.where(state["begun"], state["room"] - 1, state["room"]),
            "recent": recent,
            "done": state["done"] | xp.stack(said, 1),
            "begun": xp.ones_like(state["begun"]),
        }

    def forbid(self, scores: Array, state: State) -> Array:
        xp = namespace(scores)
        room, recent, done = (state[name] for name in ("room", "recent", "done"))
        scores = without(scores, self.eos, ~done.all(1))
        # A free token must leave room for all that is missing, from its beginning, and for EOS.
        shortest = like(room, [min(map(len, phrases)) for phrases in self.requirements])
        missing = (shortest * ~done).sum(1)  # (rows,)
        tight = (room - 2 < missing) & ~done.all(1)
        following, fitting = [], []
        for number, phrases in enumerate(self.requirements):
            for phrase in phrases:
                symbols = like(room, phrase)
                for reached in (xp.zeros_like(room), self.matched(recent, phrase)):
                    needed = missing - shortest[number] + len(phrase) - reached - 1
                    following.append(symbols[reached])
                    fitting.append(~done[:, number] & (needed <= room - 2))
        only = marked(xp.stack(following, 1), xp.stack(fitting, 1), scores.shape[1])
        return xp.where(tight[:, None] & ~only, float("-inf"), scores)

    def grown(self, state: State, more: Array) -> State:
        return {**state, "room": state["room"] + more}

    def matched(self, recent: Array, phrase: list[int]) -> Array:
        """How many tokens of the phrase's beginning stand at the end of the output.  (rows,)"""
        xp = namespace(recent)
        best = xp.zeros_like(recent[:, 0])
        for count in range(1, len(phrase)):
            best = xp.where(ends_with(recent, phrase[:count]), count, best)
        return best


def without(scores: Array, symbol: int, rows: Array) -> Array:
    """The scores, -inf at one token of some rows; those given are overwritten.  (rows, V), (rows,)"""
    scores[:, symbol] = namespace(scores).where(rows, float("-inf"), scores[:, symbol])
    return scores


def everything(rows: Array, width: int) -> Array:
    """True everywhere, as many rows as the array has.  (rows, width)"""
    xp = namespace(rows)
    return xp.ones((len(rows), width), dtype=xp.bool, device=rows.device)


def nothing(limit: Array, width: int) -> Array:
    """So many tokens before the first one, which are none.  (rows, width)"""
    return namespace(limit).full((len(limit), width), -1, dtype=limit.dtype, device=limit.device)


def followed(symbols: Array, token: Array) -> Array:
    """With one more token at the end.  (rows, t), (rows,) -> (rows, t + 1)"""
    return namespace(token).concat([symbols, token[:, None]], 1)


def marked(symbols: Array, chosen: Array, vocabulary: int) -> Array:
    """True at the chosen tokens of each row, without asking the device which.  twice (rows, n) -> (rows, V)"""
    xp = namespace(symbols)
    mask = ~everything(symbols, vocabulary + 1)
    mask[xp.arange(len(symbols), device=symbols.device)[:, None], xp.where(chosen, symbols, vocabulary)] = True
    return mask[:, :vocabulary]


def ends_with(recent: Array, phrase: list[int]) -> Array:
    """Whether each row's last tokens are the phrase.  (rows, t) -> (rows,)"""
    tail = recent[:, recent.shape[1] - len(phrase) :]
    return (tail == like(recent, phrase)).all(1)


@dataclass(frozen=True)
class Constraints:
    """Several constraints as one, and the limit with them: the last token must be EOS."""

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
    ) -> "Constraints":
        """Before the first free token: whatever a forced prefix holds has been counted."""
        states: State = {str(number): each.start(len(limit), limit) for number, each in enumerate(constraints)}
        xp = namespace(limit)
        states |= {"limit": limit, "count": xp.zeros_like(limit)}
        ours = cls(tuple(constraints), states, decoder.eos)
        if prefix is None:
            return ours
        fed = xp.concat([xp.full_like(limit, decoder.bos)[:, None], prefix.values], 1)  # (B, 1 + P)
        rows = xp.arange(len(limit), device=limit.device)
        longest = prefix.values.shape[1]
        for place in range(longest):  # shorter prefixes begin later, so that no gap stands within a history
            own = place - (longest - prefix.lengths)
            token = fed[rows, own.clip(0, None)]
            ours = cls(ours.constraints, hold(own < 0, ours.step(token).states, ours.states), ours.eos)
        return ours

    def step(self, token: Array) -> "Constraints":
        """After one more token."""
        states: State = {"limit": self.states["limit"], "count": self.states["count"] + 1}
        for number, constraint in enumerate(self.constraints):
            states[str(number)] = constraint.step(token, self.states[str(number)])
        return Constraints(self.constraints, states, self.eos)

    @property
    def last(self) -> Array:
        """Whether the token that comes now is the last there is room for.  (rows,)"""
        return self.states["count"] >= self.states["limit"]

    def forbid(self, scores: Array) -> Array:
        """The scores, -inf where a token may not follow; those given are overwritten.  (rows, V)"""
        for number, constraint in enumerate(self.constraints):
            scores = constraint.forbid(scores, self.states[str(number)])
        if self.eos is not None and perhaps(self.last):
            xp, end = namespace(scores), scores[:, self.eos]
            scores = xp.where(self.last[:, None], float("-inf"), scores)
            scores[:, self.eos] = end
        return scores

    def grown(self, limit: Array) -> "Constraints":
        """With another limit, since there is more of the source now.  (rows,)"""
        more = limit - self.states["limit"]
        states: State = {"limit": limit, "count": self.states["count"]}
        for number, constraint in enumerate(self.constraints):
            states[str(number)] = constraint.grown(self.states[str(number)], more)
        return Constraints(self.constraints, states, self.eos)

    def select(self, rows: Array) -> "Constraints":
        return Constraints(self.constraints, select(self.states, rows), self.eos)
