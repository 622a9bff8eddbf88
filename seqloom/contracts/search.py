"""What a search and its constraints must be able to do, and what they ask of a decoder. Needs no torch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from seqloom.arrays import Array, cast, namespace
from seqloom.errors import SeqloomError
from seqloom.types import Hypothesis, Memory, Output, Padded, State, hold, select

LONGEST_OUTPUT = 20_000  # tokens, unless the source has more: where a model has not learned to end, outputs end here
EXACT = 2**24  # up to here float32 holds every integer
MOST_WEIGHTS = 4_000_000  # of attention, that are returned or shown for one source


class Stepper(ABC):
    """A decoder as a search sees it: it scores the next token, in torch or in numpy."""

    bos: int
    eos: int | None  # None: only the length limit ends an output
    blanks: tuple[int, ...] = ()  # tokens that are not part of the output: blank, shift, end of block, read
    advances: Literal["blank", "all"] = "blank"  # which tokens advance to the next frame
    online: bool = False  # it writes while it reads, and waits where it must
    may_rise: bool = False  # scores may be above 0, so the score of a hypothesis may rise
    scores: Literal["logits", "log_probs"] = "logits"  # what a step returns; log_probs are not normalised again
    length_ratio: float = 2.0  # an output has at most length_ratio * source length + length_offset tokens
    length_offset: int = 10

    @abstractmethod
    def start(self, memory: Memory) -> State:
        """The state before the first token, one row per source."""

    @abstractmethod
    def step(self, token: Array, state: State, memory: Memory) -> tuple[Array, State]:
        """Logits of the next token after `token`.  (rows,) -> (rows, V)

        A row that needs more of a memory that is not closed has -inf for every token: it waits for more input.
        """

    def states_read(self, state: State, memory: Memory) -> Array | None:
        """How many states of the source each row had read when it returned this state; None: all."""
        return None

    def first_needed(self, state: State) -> int:
        """The first state of the source that any row may still look at, counted from its beginning."""
        return 0

    def __call__(self, memory: Memory, inputs: Padded, state: State | None = None, attention: bool = False) -> Output:
        """All steps, inputs given, here one by one. Not every decoder returns attention."""
        rows, width = inputs.values.shape
        state = self.start_rows(memory, rows) if state is None else state
        logits = []
        for place in range(width):
            scores, after = self.step(inputs.values[:, place], state, memory)
            logits.append(scores)
            state = hold(inputs.lengths <= place, after, state)
        return Output(namespace(inputs.values).stack(logits, 1), lambda scores: scores, state)

    def limit(self, memory: Memory) -> Array:
        """The largest number of tokens of an output, EOS included.  (B,)"""
        lengths = memory.offset + memory.lengths if memory.source_lengths is None else memory.source_lengths
        xp = namespace(lengths)  # in float64, numpy's default, 2.2 * 5 is above 11
        longest = xp.ceil(xp.asarray(lengths, dtype=xp.float32) * self.length_ratio).clip(0, EXACT)
        return xp.minimum(cast(longest, lengths), lengths.clip(LONGEST_OUTPUT, None)) + self.length_offset

    def start_rows(self, memory: Memory, rows: int) -> State:
        """`start` for several rows per source."""
        return select(self.start(memory), memory.owner(rows))


class Constraint(ABC):
    """Which tokens may follow: the one mechanism for tours, bags, banned and required words, repeats."""

    @abstractmethod
    def start(self, rows: int, limit: Array) -> State:
        """The state of empty hypotheses; limit (rows,) is how many tokens each may have."""

    @abstractmethod
    def step(self, token: Array, state: State) -> State:
        """The state after the token just chosen (at first BOS).  (rows,)"""

    @abstractmethod
    def forbid(self, scores: Array, state: State) -> Array:
        """The scores, with -inf where a token may not follow; may write into its argument.  (rows, V)"""

    def grown(self, state: State, more: Array) -> State:
        """The state after the limit rose by so many tokens, because more of the source arrived.  (rows,)"""
        return state


class Search(ABC):
    """How outputs are found. Start, advance, finish: a stream advances again whenever more input arrives."""

    @abstractmethod
    def start(
        self,
        decoder: Stepper,
        memory: Memory,
        prefix: Padded | None = None,
        constraints: Sequence[Constraint] = (),
    ) -> Any:
        """The beam before its first step, after the prefix."""

    @abstractmethod
    def advance(self, decoder: Stepper, memory: Memory, beam: Any) -> Any:
        """The beam after as many steps as the memory allows."""

    @abstractmethod
    def finish(self, decoder: Stepper, memory: Memory, beam: Any) -> list[list[Hypothesis]]:
        """For each source its hypotheses, best first."""

    def suit(self, decoder: Stepper) -> None:
        """Raise a ValueError, one line, for a decoder that it cannot search."""
        if decoder.blanks:
            raise ValueError('cannot search a decoder with blanks; take "prefix_beam"')

    def so_far(self, beam: Any) -> list[tuple[list[int], list[int], list[int]]]:
        """For each source the tokens that are certain, those of the best guess after them, and the times of both.

        A time is how many states of the memory had been read; the list is empty where that is not known.
        """
        raise SeqloomError(f"{type(self).__name__.lower()} is certain of nothing before its end: stream with a beam")

    def __call__(
        self,
        decoder: Stepper,
        memory: Memory,
        prefix: Padded | None = None,
        constraints: Sequence[Constraint] = (),
    ) -> list[list[Hypothesis]]:
        """The hypotheses of a prepared memory."""
        beam = self.advance(decoder, memory, self.start(decoder, memory, prefix, constraints))
        return self.finish(decoder, memory, beam)


def refuse_large_attention(source: int, outputs: Sequence[int]) -> None:
    """Refuse attention that would fill the memory: it has a weight for each token of an output and source position."""
    if source * sum(outputs) > MOST_WEIGHTS:
        raise SeqloomError(
            f"attention: {sum(outputs):,} tokens of outputs and {source:,} positions of a source make more weights "
            f"than {MOST_WEIGHTS:,}; ask for it with a shorter source, or leave it out"
        )


class Finder(ABC):
    """What finds outputs for encoded sources: a model in torch, or the engine of an exported one."""

    is_head: bool = False  # it answers at once: there is nothing to search

    @abstractmethod
    def find(
        self,
        encoded: Sequence[Sequence[np.ndarray]],
        search: Search,
        prefix: np.ndarray | None = None,
        constraints: Sequence[Constraint] = (),
        attention: bool = False,
        details: bool = True,
    ) -> list[list[Hypothesis]]:
        """The hypotheses of each source, best first.

        A source is given as each codec reads it: once, except in an ensemble whose members read it each in its own way.
        Without details, scores and log-probabilities may be left out.
        """
