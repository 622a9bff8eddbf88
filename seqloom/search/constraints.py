"""Which symbols may follow: minimum length, banned and required symbols, no repeated n-grams.

All are one mechanism, the `Constraint`: a state a hypothesis carries and a mask over the next symbol.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from seqloom.contracts import Constraint, Decoder
from seqloom.types import Padded, State, hold, select


class MinimumLength(Constraint):
    """No end before so many symbols (EOS not counted)."""

    def __init__(self, length: int, eos: int):
        self.length, self.eos = length, eos

    def start(self, rows: int, limit: Tensor) -> State:
        return {"count": limit.new_full((rows,), -1)}  # the BOS that comes first is no symbol of the output

    def step(self, token: Tensor, state: State, vocabulary: int) -> tuple[Tensor, State]:
        count = state["count"] + 1
        allowed = torch.ones(len(token), vocabulary, dtype=torch.bool, device=token.device)
        allowed[:, self.eos] = count >= self.length
        return allowed, {"count": count}


class Banned(Constraint):
    """These symbols never, and these phrases never to their end."""

    def __init__(self, phrases: Sequence[Sequence[int]]):
        self.phrases = [list(phrase) for phrase in phrases if phrase]
        self.longest = max(map(len, self.phrases), default=1)

    def start(self, rows: int, limit: Tensor) -> State:
        return {"recent": limit.new_full((rows, self.longest), -1)}

    def step(self, token: Tensor, state: State, vocabulary: int) -> tuple[Tensor, State]:
        recent = torch.cat([state["recent"][:, 1:], token[:, None]], dim=1)
        allowed = torch.ones(len(token), vocabulary, dtype=torch.bool, device=token.device)
        for phrase in self.phrases:
            allowed[:, phrase[-1]] &= ~ends_with(recent, phrase[:-1])
        return allowed, {"recent": recent}


class NoRepeat(Constraint):
    """No n-gram twice. Paulus, Xiong & Socher 2018, section 2.5, for n = 3."""

    def __init__(self, length: int):
        self.length = length

    def start(self, rows: int, limit: Tensor) -> State:
        return {"history": limit.new_zeros(rows, 0)}

    def step(self, token: Tensor, state: State, vocabulary: int) -> tuple[Tensor, State]:
        history = torch.cat([state["history"], token[:, None]], dim=1)  # (rows, t), BOS first
        allowed = torch.ones(len(token), vocabulary, dtype=torch.bool, device=token.device)
        if history.shape[1] >= self.length:
            grams = history.unfold(1, self.length, 1)  # (rows, t - n + 1, n)
            recent = history[:, history.shape[1] - self.length + 1 :]  # (rows, n - 1)
            repeats = (grams[:, :, :-1] == recent[:, None]).all(-1)  # (rows, t - n + 1)
            allowed = ~marked(grams[:, :, -1], repeats, vocabulary)
        return allowed, {"history": history}


class Required(Constraint):
    """Each of these at least once: no end before, and forced when the room would not suffice later.

    A requirement is a list of phrases of which one is enough: a word may be spelled in several ways.
    """

    def __init__(self, requirements: Sequence[Sequence[Sequence[int]]], eos: int):
        self.requirements = [[list(phrase) for phrase in phrases] for phrases in requirements]
        self.longest = max(len(phrase) for phrases in self.requirements for phrase in phrases)
        self.eos = eos

    def start(self, rows: int, limit: Tensor) -> State:
        return {
            "room": limit,  # symbols that may still come, EOS included; the BOS that comes first takes none
            "recent": limit.new_full((rows, self.longest), -1),
            "done": torch.zeros(rows, len(self.requirements), dtype=torch.bool, device=limit.device),
            "begun": torch.zeros(rows, dtype=torch.bool, device=limit.device),
        }

    def step(self, token: Tensor, state: State, vocabulary: int) -> tuple[Tensor, State]:
        output = torch.where(state["begun"], token, -1)  # BOS is no part of it
        recent = torch.cat([state["recent"][:, 1:], output[:, None]], dim=1)
        room = state["room"] - state["begun"].long()
        said = [
            torch.stack([ends_with(recent, phrase) for phrase in phrases]).any(dim=0) for phrases in self.requirements
        ]
        done = state["done"] | torch.stack(said, dim=1)
        allowed = torch.ones(len(token), vocabulary, dtype=torch.bool, device=token.device)
        allowed[:, self.eos] = done.all(dim=1)

        # A free symbol must leave room for all that is missing, from its beginning, and for EOS.
        shortest = torch.tensor([min(map(len, phrases)) for phrases in self.requirements], device=token.device)
        missing = (shortest * ~done).sum(dim=1)  # (rows,)
        tight = (room - 2 < missing) & ~done.all(dim=1)
        following, fitting = [], []
        for number, phrases in enumerate(self.requirements):
            for phrase in phrases:
                symbols = torch.tensor(phrase, device=token.device)
                for reached in (torch.zeros_like(room), self.matched(recent, phrase)):
                    needed = missing - shortest[number] + len(phrase) - reached - 1
                    following.append(symbols[reached])
                    fitting.append(~done[:, number] & (needed <= room - 2))
        only = marked(torch.stack(following, dim=1), torch.stack(fitting, dim=1), vocabulary)
        allowed = torch.where(tight[:, None], only, allowed)
        begun = torch.ones_like(state["begun"])
        return allowed, {"room": room, "recent": recent, "done": done, "begun": begun}

    def matched(self, recent: Tensor, phrase: list[int]) -> Tensor:
        """How many symbols of the phrase's beginning stand at the end of the output.  (rows,)"""
        best = torch.zeros(len(recent), dtype=torch.long, device=recent.device)
        for count in range(1, len(phrase)):
            best = torch.where(ends_with(recent, phrase[:count]), count, best)
        return best


def marked(symbols: Tensor, chosen: Tensor, vocabulary: int) -> Tensor:
    """True at the chosen symbols of each row, without asking the device which.  twice (rows, n) -> (rows, V)"""
    mask = torch.zeros(len(symbols), vocabulary + 1, dtype=torch.bool, device=symbols.device)
    return mask.scatter_(1, torch.where(chosen, symbols, vocabulary), True)[:, :vocabulary]


def ends_with(recent: Tensor, phrase: list[int]) -> Tensor:
    """Whether each row's last symbols are the phrase.  (rows, t) -> (rows,)"""
    tail = recent[:, recent.shape[1] - len(phrase) :]
    return (tail == torch.tensor(phrase, dtype=recent.dtype, device=recent.device)).all(dim=1)


@dataclass(frozen=True)
class Constraints:
    """Several constraints as one, and the limit with them: the last symbol must be EOS."""

    constraints: tuple[Constraint, ...]
    states: State  # {"0": state of the first, ..., "limit": (rows,), "count": (rows,)}
    eos: int | None

    @classmethod
    def begin(
        cls,
        constraints: Sequence[Constraint],
        decoder: Decoder,
        limit: Tensor,
        prefix: Padded | None,
        vocabulary: int,
    ) -> "Constraints":
        """Before the first free symbol: whatever a forced prefix holds has been counted."""
        states: State = {str(number): each.start(len(limit), limit) for number, each in enumerate(constraints)}
        states |= {"limit": limit, "count": torch.zeros_like(limit)}
        ours = cls(tuple(constraints), states, decoder.eos)
        if prefix is None:
            return ours
        fed = torch.cat([torch.full_like(limit, decoder.bos)[:, None], prefix.values], dim=1)
        longest = prefix.values.shape[1]
        for place in range(longest):  # shorter prefixes begin later, so that no gap stands within a history
            own = place - (longest - prefix.lengths)
            token = fed.gather(1, own.clamp(min=0)[:, None])[:, 0]
            after = ours.step(token, vocabulary)[1]
            ours = cls(ours.constraints, hold(own < 0, after.states, ours.states), ours.eos)
        return ours

    def step(self, token: Tensor, vocabulary: int) -> tuple[Tensor | None, "Constraints"]:
        """Which symbols may follow (None: all), and the constraints after the token.  (rows, V)"""
        states: State = {"limit": self.states["limit"], "count": self.states["count"] + 1}
        allowed = None
        for number, constraint in enumerate(self.constraints):
            mask, states[str(number)] = constraint.step(token, self.states[str(number)], vocabulary)
            allowed = mask if allowed is None else allowed & mask
        return allowed, Constraints(self.constraints, states, self.eos)

    @property
    def last(self) -> Tensor:
        """Whether the symbol that comes now is the last there is room for.  (rows,)"""
        return self.states["count"] >= self.states["limit"]

    def apply(self, scores: Tensor, allowed: Tensor | None) -> Tensor:
        """Scores (rows, V), -inf where a symbol may not follow."""
        if allowed is not None:
            scores = scores.masked_fill(~allowed, float("-inf"))
        if self.eos is not None:
            end = torch.full_like(scores, float("-inf"))
            end[:, self.eos] = scores[:, self.eos]
            scores = torch.where(self.last[:, None], end, scores)
        return scores

    def select(self, rows: Tensor) -> "Constraints":
        return Constraints(self.constraints, select(self.states, rows), self.eos)
