"""What all searches share: a few options, and their start. It reads the prefix and gives rows to sources."""

from collections.abc import Sequence

from seqloom.arrays import Array, namespace, take_rows
from seqloom.contracts import Constraint, Stepper
from seqloom.search.constraints.combined import Constraints
from seqloom.search.constraints.length import MinimumLength
from seqloom.search.constraints.no_repeat import NoRepeat
from seqloom.types import Memory, Padded, State, hold, select
from seqloom.values import expect

BEAM_SIZE = 1_000  # at most: each hypothesis has a state, and a score for every token
LENGTH_PENALTY = 10  # at most: a length of 20,000 to this power is still a number
MOST_TOKENS = 1_000_000  # of an output, that may be asked for
NOT_FINITE = "the model's scores are not finite: its training diverged; lower train.learning_rate"


class SearchOptions:
    """Lengths (the minimum does not count EOS, the maximum does), and `no_repeat`: no n-gram of that length twice."""

    def __init__(self, minimum_length: int, maximum_length: int | None, no_repeat: int):
        expect(0, MOST_TOKENS, minimum_length=minimum_length, maximum_length=maximum_length, no_repeat=no_repeat)
        if maximum_length is not None and maximum_length <= minimum_length:
            raise ValueError(f"maximum_length = {maximum_length} must exceed minimum_length = {minimum_length}")
        self.minimum_length, self.maximum_length, self.no_repeat = minimum_length, maximum_length, no_repeat

    def start_rows(
        self,
        count: int,
        decoder: Stepper,
        memory: Memory,
        prefix: Padded | None,
        constraints: Sequence[Constraint],
    ) -> tuple[Array, State, Constraints]:
        """The next input, the state before it and the constraints, for `count` rows per source."""
        constraints = self.constraints(decoder, constraints)
        token, state = read_prefix(decoder, memory, prefix)
        begun = Constraints.begin(constraints, decoder, self.limit(decoder, memory, prefix), prefix)
        owner = memory.owner(memory.rows * count)
        return take_rows(token, owner), select(state, owner), begun.select(owner)

    def limit(self, decoder: Stepper, memory: Memory, prefix: Padded | None) -> Array:
        """How many tokens an output may have, EOS included.  (B,)"""
        limit = decoder.limit(memory)
        xp = namespace(limit)
        if self.maximum_length is not None:
            limit = limit.clip(None, self.maximum_length)
            if decoder.eos is None:  # only the limit ends such an output, so that maximum_length may raise it
                limit = xp.full_like(limit, self.maximum_length)
        limit = limit.clip(self.minimum_length + 1, None)
        return limit if prefix is None else xp.maximum(limit, prefix.lengths + 1)

    def constraints(self, decoder: Stepper, given: Sequence[Constraint]) -> list[Constraint]:
        """The given constraints, and those of the options."""
        constraints = list(given)
        if self.minimum_length and decoder.eos is not None:
            constraints.append(MinimumLength(self.minimum_length, decoder.eos))
        if self.no_repeat:
            constraints.append(NoRepeat(self.no_repeat))
        return constraints


def read_prefix(decoder: Stepper, memory: Memory, prefix: Padded | None) -> tuple[Array, State]:
    """The last token of the prefix, or BOS, and the state before it: one pass of teacher forcing.  (B,)"""
    state = decoder.start(memory)
    xp = namespace(memory.lengths)
    begin = xp.full_like(memory.lengths, decoder.bos)  # (B,)
    if prefix is None or prefix.values.shape[1] == 0:
        return begin, state
    tokens = xp.concat([begin[:, None], prefix.values], 1)  # (B, 1 + P)
    token = tokens[xp.arange(memory.rows, device=tokens.device), prefix.lengths]
    inputs = Padded(tokens[:, :-1], prefix.lengths.clip(1, None))
    after = decoder(memory, inputs, state).state
    return token, hold(prefix.lengths == 0, after, state)


def prefix_tokens(prefix: Padded | None, rows: int) -> list[list[int]]:
    """The forced tokens of each source."""
    if prefix is None:
        return [[] for _ in range(rows)]
    return [row[:length] for row, length in zip(prefix.values.tolist(), prefix.lengths.tolist())]


def steps_between_checks(tokens: Array) -> int:
    """How often to check whether sources are done: it stalls an accelerator, and is cheap on a CPU."""
    return 1 if str(tokens.device) == "cpu" else 8


def check_beam_size(beam_size: int, n_best: int) -> None:
    """A beam gives at most beam_size outputs."""
    expect(1, BEAM_SIZE, beam_size=beam_size, n_best=n_best)
    if n_best > beam_size:
        raise ValueError(f"n_best = {n_best} needs a beam at least as wide: raise beam_size = {beam_size}")
