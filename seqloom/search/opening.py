"""How every search opens: the prefix is read, the constraints begin, each source gets its rows."""

from collections.abc import Sequence

import torch
from torch import Tensor

from seqloom.contracts import Constraint, Decoder
from seqloom.search.constraints import Constraints, MinimumLength, NoRepeat
from seqloom.types import Memory, Padded, State, hold, select


class Opening:
    """What all searches can be asked: lengths (EOS not counted in the minimum), no n-gram twice."""

    def __init__(self, minimum_length: int, maximum_length: int | None, no_repeat: int):
        if maximum_length is not None and maximum_length <= minimum_length:
            raise ValueError(f"maximum_length = {maximum_length} must exceed minimum_length = {minimum_length}")
        self.minimum_length, self.maximum_length, self.no_repeat = minimum_length, maximum_length, no_repeat

    def rows(
        self,
        count: int,
        decoder: Decoder,
        memory: Memory,
        prefix: Padded | None,
        constraints: Sequence[Constraint],
    ) -> tuple[Tensor, State, Constraints]:
        """For so many rows a source: the token to go on from, the state before it, and what may follow."""
        limit = decoder.limit(memory)  # (B,)
        if self.maximum_length is not None:
            limit = limit.clamp(max=self.maximum_length)
            if decoder.eos is None:  # nothing but the limit ends such an output: a longer one may be asked for
                limit = torch.full_like(limit, self.maximum_length)
        limit = limit.clamp(min=self.minimum_length + 1)
        if prefix is not None:
            limit = torch.maximum(limit, prefix.lengths + 1)
        chosen = list(constraints)
        if self.minimum_length and decoder.eos is not None:
            chosen.append(MinimumLength(self.minimum_length, decoder.eos))
        if self.no_repeat:
            chosen.append(NoRepeat(self.no_repeat))
        token, state = read_prefix(decoder, memory, prefix)
        vocabulary = 0
        if prefix is not None and chosen:  # how many symbols there are is known from scores alone
            vocabulary = decoder.step(token, state, memory)[0].shape[-1]
        begun = Constraints.begin(chosen, decoder, limit, prefix, vocabulary)
        owner = memory.owner(memory.rows * count)
        return token[owner], select(state, owner), begun.select(owner)


def read_prefix(decoder: Decoder, memory: Memory, prefix: Padded | None) -> tuple[Tensor, State]:
    """One pass of teacher forcing, not one step a symbol: the last token and the state before it.  (B,)"""
    state = decoder.start(memory)
    begin = torch.full((memory.rows, 1), decoder.bos, dtype=torch.long, device=memory.lengths.device)
    if prefix is None or prefix.values.shape[1] == 0:
        return begin[:, 0], state
    fed = torch.cat([begin, prefix.values], dim=1)  # (B, 1 + P)
    token = fed.gather(1, prefix.lengths[:, None])[:, 0]
    inputs = Padded(fed[:, :-1], prefix.lengths.clamp(min=1))
    after = decoder(memory, inputs, state).state
    return token, hold(prefix.lengths == 0, after, state)


def prefixes(prefix: Padded | None, rows: int) -> list[list[int]]:
    """The forced tokens of each source."""
    if prefix is None:
        return [[] for _ in range(rows)]
    return [row[:length] for row, length in zip(prefix.values.tolist(), prefix.lengths.tolist())]


def steps_between_questions(tokens: Tensor) -> int:
    """How often to ask whether all is done: that stalls an accelerator, and costs a processor nothing."""
    return 1 if tokens.device.type == "cpu" else 8
