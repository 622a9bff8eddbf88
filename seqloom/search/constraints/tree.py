"""Trees: an output is one tree with as many words as its source. Vinyals et al. 2015, "Grammar as a foreign language".

Brackets balance and close by their own label, no constituent is empty, and all words are below one root. Chains of
constituents with a single child end where the room would not suffice for the words that are left and what is open.
"""

from seqloom.arrays import NEVER, Array, cast, like, namespace
from seqloom.contracts import Constraint
from seqloom.errors import SeqloomError
from seqloom.search.constraints.history import no_tokens
from seqloom.types import Padded, State, hold


class WellFormed(Constraint):
    """Tokens from `first` on: each label opening, each label closing, then the tags, any of which is a word.

    One row of the source, which has a token for each word, per row of the limit, in the same order.
    """

    def __init__(self, source: Padded, first: int, labels: int, tags: int, eos: int):
        self.lengths, self.first, self.labels, self.tags, self.eos = source.lengths, first, labels, tags, eos

    def start(self, rows: int, limit: Array) -> State:
        xp, words = namespace(limit), like(limit, self.lengths)
        if bool((limit < words + 3).any()):  # a root around the words, and the end
            raise SeqloomError(
                "a tree has more tokens than an output has room for, the end included: "
                "raise search.maximum_length, decoder.length_ratio or decoder.length_offset"
            )
        no, none = xp.zeros_like(limit, dtype=xp.bool), xp.zeros_like(limit)
        return {
            "open": no_tokens(limit, 0),  # labels, outermost first; the first `depth` of them are open (rows, t)
            "depth": none,
            "words": cast(words, limit),  # that are left
            "room": limit,  # tokens that may still come, EOS included
            "empty": no,  # whether the innermost constituent has just been opened
            "begun": no,
            "broken": no,
        }

    def step(self, token: Array, state: State) -> State:
        xp, depth = namespace(token), state["depth"]
        number = token - self.first
        opens, closes = (number >= 0) & (number < self.labels), (number >= self.labels) & (number < 2 * self.labels)
        word = number >= 2 * self.labels
        inner = xp.concat([state["open"], xp.zeros_like(token)[:, None]], 1)
        here = xp.arange(inner.shape[1], device=token.device) == depth[:, None]
        fits = xp.concat(self.allowed(state), 1)[xp.arange(len(token), device=token.device), number.clip(0, None)]
        after = {
            "open": xp.where(here & opens[:, None], number[:, None], inner),
            "depth": depth + cast(opens, depth) - cast(closes, depth),
            "words": state["words"] - cast(word, depth),
            "room": state["room"] - 1,
            "empty": opens,
            "broken": state["broken"] | ~fits | (number < 0),
        }
        # The first step is BOS, which is no part of the output.
        before = {name: value for name, value in state.items() if name != "begun"}
        return {**hold(~state["begun"], after, before), "begun": xp.ones_like(state["begun"])}

    def forbid(self, scores: Array, state: State) -> Array:
        xp = namespace(scores)
        special = xp.zeros((len(scores), self.first), dtype=xp.bool, device=scores.device)
        special[:, self.eos] = (state["depth"] == 0) & (state["words"] == 0)
        fitting = xp.concat([special, *self.allowed(state)], 1) & ~state["broken"][:, None]  # (rows, V)
        return xp.where(fitting, scores, NEVER)

    def allowed(self, state: State) -> list[Array]:
        """Which labels may open, which may close, and which tags may follow.  (rows, labels) twice, (rows, tags)"""
        xp, depth, words = namespace(state["depth"]), state["depth"], state["words"]
        left = words > 0
        # After an opening: the words, what is open then, and the end.
        opens = left & (state["room"] - 1 >= words + (depth + 1) + 1)
        closes = (depth > 0) & ~state["empty"] & ~((depth == 1) & left)
        places = xp.arange(state["open"].shape[1], device=depth.device) == depth[:, None] - 1
        innermost = (state["open"] * cast(places, depth)).sum(1)  # 0 where nothing is open
        label = xp.arange(self.labels, device=depth.device) == innermost[:, None]
        anywhere = xp.ones((1, max(self.labels, self.tags)), dtype=xp.bool, device=depth.device)
        word = left & (depth > 0)
        return [
            opens[:, None] & anywhere[:, : self.labels],
            label & closes[:, None],
            word[:, None] & anywhere[:, : self.tags],
        ]
