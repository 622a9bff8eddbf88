"""What a part must be able to do that needs no torch: steppers, searches, constraints, codecs, tasks.

An exported model is searched and its outputs are read without torch, by the same code as a trained one. Contracts of
parts that are trained are in `seqloom/contracts.py`, where these are found too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np

from seqloom.arrays import Array, cast, namespace
from seqloom.errors import SeqloomError
from seqloom.types import Batch, Example, Hypothesis, Memory, Output, Padded, State, hold, select


class Stepper(ABC):
    """A decoder as a search sees it: whatever scores the next symbol, in torch or not."""

    bos: int
    eos: int | None  # None: only the limit ends an output
    silent: tuple[int, ...] = ()  # symbols that are not part of the output: blank, shift, end of block, read
    moves: Literal["silent", "all"] = "silent"  # which symbols go on to the next input
    online: bool = False  # it writes before it has read all: it waits where it must
    rises: bool = False  # scores may be above 0: what an output is worth may rise with a symbol
    scores: Literal["logits", "log_probs"] = "logits"  # what a step gives: log_probs are taken as they are
    length_ratio: float = 2.0  # the longest output, as length_ratio * source + length_offset
    length_offset: int = 10

    @abstractmethod
    def start(self, memory: Memory) -> State:
        """The state before the first symbol, a row a source."""

    @abstractmethod
    def step(self, token: Array, state: State, memory: Memory) -> tuple[Array, State]:
        """Logits of the next symbol after `token`.  (rows,) -> (rows, V)

        A row that needs more of a memory that is not closed has -inf for every symbol: it waits, and is asked again.
        """

    def seen(self, state: State, memory: Memory) -> Array | None:
        """How many states of the source each row had read when it gave its scores and this state; None: all."""
        return None

    def needed(self, state: State) -> int:
        """The first place of the source that any row may still look at, counted from its beginning."""
        return 0

    def __call__(self, memory: Memory, inputs: Padded, state: State | None = None, attention: bool = False) -> Output:
        """All steps, inputs given: here one by one. Attention is a wish that not everyone fulfils."""
        rows, width = inputs.values.shape
        state = self.start_rows(memory, rows) if state is None else state
        logits = []
        for place in range(width):
            scores, after = self.step(inputs.values[:, place], state, memory)
            logits.append(scores)
            state = hold(inputs.lengths <= place, after, state)
        return Output(namespace(inputs.values).stack(logits, 1), lambda scores: scores, state)

    def limit(self, memory: Memory) -> Array:
        """How many symbols an output may have at most, EOS included.  (B,)"""
        lengths = memory.offset + memory.lengths
        xp = namespace(lengths)  # numpy would multiply more precisely than torch, and 2.2 * 5 be above 11
        longest = xp.ceil(xp.asarray(lengths, dtype=xp.float32) * self.length_ratio)
        return cast(longest, lengths) + self.length_offset

    def start_rows(self, memory: Memory, rows: int) -> State:
        """`start` for several rows a source."""
        return select(self.start(memory), memory.owner(rows))


class Constraint(ABC):
    """Which symbols may follow: tours, bags, banned and required words, no repeats. One mechanism."""

    @abstractmethod
    def start(self, rows: int, limit: Array) -> State:
        """The state of hypotheses without a symbol; limit (rows,) is how many symbols each may have."""

    @abstractmethod
    def step(self, token: Array, state: State) -> State:
        """The state after the token just chosen (at first BOS).  (rows,)"""

    @abstractmethod
    def forbid(self, scores: Array, state: State) -> Array:
        """The scores, -inf where a symbol may not follow; those given may be overwritten.  (rows, V)"""

    def grown(self, state: State, more: Array) -> State:
        """The state, since a hypothesis may have so many symbols more: there is more of the source now.  (rows,)"""
        return state


class Search(ABC):
    """How outputs are found. Start, advance, finish: a stream may stop between."""

    @abstractmethod
    def start(
        self,
        decoder: Stepper,
        memory: Memory,
        prefix: Padded | None = None,
        constraints: Sequence[Constraint] = (),
    ) -> Any:
        """The beam before its first step; a prefix has been read by then."""

    @abstractmethod
    def advance(self, decoder: Stepper, memory: Memory, beam: Any) -> Any:
        """The beam after as many steps as the memory allows."""

    @abstractmethod
    def finish(self, decoder: Stepper, memory: Memory, beam: Any) -> list[list[Hypothesis]]:
        """For each source its hypotheses, best first."""

    def so_far(self, beam: Any) -> list[tuple[list[int], list[int], list[int]]]:
        """Of each source the symbols that are certain, those the best guess goes on with, and the times of both.

        Times are how many states of the memory had been read, one a symbol; there are none if nobody knows.
        """
        raise SeqloomError(f"{type(self).__name__.lower()} is not sure of anything before its end: stream with a beam")

    def __call__(
        self,
        decoder: Stepper,
        memory: Memory,
        prefix: Padded | None = None,
        constraints: Sequence[Constraint] = (),
    ) -> list[list[Hypothesis]]:
        """From a prepared memory to hypotheses."""
        beam = self.advance(decoder, memory, self.start(decoder, memory, prefix, constraints))
        return self.finish(decoder, memory, beam)


class Feed(ABC):
    """One value as it comes. What it gives back, end to end, is what `encode` makes of the whole."""

    @abstractmethod
    def feed(self, raw: Any) -> np.ndarray:
        """Some more of the value, perhaps nothing: the positions that are complete now."""

    @abstractmethod
    def close(self) -> np.ndarray:
        """The value has come to its end: the positions that are left."""


class Codec(ABC):
    """One side of the data: raw value <-> array of numpy."""

    vocabulary: int | None = None  # how many symbols, where values are symbols
    features: int | None = None  # how many components, where values are vectors
    seconds: float | None = None  # how long a position lasts, where values are sound
    chooses: ClassVar[str] = ""  # "places": of the source, and nothing else; "copies": words of the source, too
    nested: ClassVar[bool] = False  # a source is a table of symbols (T, W): a row a sentence
    names_files: ClassVar[bool] = False  # a value that is a text is the path of a file
    augment: Callable[[Padded, np.random.Generator], Padded] | None = None  # how sources are varied in training

    @abstractmethod
    def fit(self, values: Iterable[Any]) -> Self:
        """Learn whatever is learned from data: a vocabulary, a mean. Reads the values once, keeps none."""

    @abstractmethod
    def encode(self, value: Any, source: Any = None) -> np.ndarray:
        """The value as symbols, int64 (T,), or as vectors, float32 (T, F); without BOS and EOS."""

    def read(self, value: Any) -> np.ndarray:
        """The value as a source. Where outputs may be copied from it, unknown symbols are told apart."""
        return self.encode(value)

    @abstractmethod
    def decode(self, values: Any, source: Any = None) -> Any:
        """The value that symbols or vectors stand for: a list of them, or an array of any kind."""

    def content(self, value: Any) -> Any:
        """What a value is told from others by. What could never be encoded, whatever is learned, is unreadable."""
        return value

    def elements(self, value: Any) -> int | None:
        """How many positions a value has, where that is known before anything is learned."""
        return None

    def feed(self) -> Feed:
        """A value that comes piece by piece."""
        raise SeqloomError(f"{type(self).__name__.lower()} cannot be streamed: give whole sources to `predict`")

    def line(self, value: Any) -> str:
        """The value as a line of a file says it."""
        return str(value)

    @abstractmethod
    def save(self, folder: Path, name: str) -> None:
        """Write what `fit` learned into files of the folder whose names begin with `name`."""

    @abstractmethod
    def load(self, folder: Path, name: str) -> Self:
        """Read back what `save` wrote."""


class Task(ABC):
    """What is to be learned: codecs for both sides, how examples become batches, what counts as good."""

    source: Codec | None = None  # None: a language model's
    target: Codec
    joint: bool = False  # one codec for both sides
    metrics: tuple[str, ...] = ()
    running: ClassVar[bool] = False  # the examples are the lines of one text
    constrained: bool = False  # it has constraints of its own
    writes_unknown: bool = False  # outputs may hold the unknown symbol
    carry: bool = False  # a batch starts from the state that another left
    window: int = 0  # symbols of a running text that are read at once
    bos: ClassVar[int]  # what a decoder is given before the first symbol
    eos: ClassVar[int | None]  # what ends an output; None: only its length does

    @abstractmethod
    def plan(self, lengths: Any, tokens: int, seed: int, epoch: int, accumulate: int = 1) -> Any:
        """The batches of an epoch (data.batching.Plan), a pure function of the arguments."""

    @abstractmethod
    def in_order(self, lengths: Any, tokens: int) -> Any:
        """The batches of a validation."""

    @abstractmethod
    def collate(self, corpus: Any, rows: Any) -> Batch:
        """The batch of one entry of a plan, in tensors."""

    def batch(self, sources: Sequence[np.ndarray] | None, targets: Sequence[np.ndarray]) -> Batch:
        """Encoded examples that stand each for itself, in tensors."""
        raise NotImplementedError(f"{type(self).__name__} has no examples that stand alone")

    @property
    def augments(self) -> bool:
        """Whether batches are varied in training."""
        return self.source is not None and self.source.augment is not None

    def augment(self, batch: Batch, chance: np.random.Generator) -> Batch:
        """The batch as it is trained on."""
        if batch.source is None or self.source is None or self.source.augment is None:
            return batch
        return replace(batch, source=self.source.augment(batch.source, chance))

    def constraints(self, source: Padded | None) -> list[Constraint]:
        """What outputs for these sources obey, beside what a user asks for."""
        return []

    def check(self, example: Example) -> None:  # noqa: B027  # most have nothing to say
        """Refuse, as unreadable, an example whose sides are fine but could not be learned or measured together."""

    def encode(self, value: Any) -> np.ndarray:
        """A target, or the beginning of one, as symbols."""
        return self.target.encode(value)

    def decode(self, tokens: Any, source: Any = None) -> Any:
        """What the symbols of an output stand for."""
        return self.target.decode(tokens, source)

    def save(self, folder: Path) -> None:
        """Write what the codecs learned."""
        self.target.save(folder, "target")
        if self.source is not None and not self.joint:
            self.source.save(folder, "source")

    def load(self, folder: Path) -> Self:
        """Read it back."""
        self.target.load(folder, "target")
        if self.source is not None and not self.joint:
            self.source.load(folder, "source")
        return self

    def references(self, examples: Iterable[Any]) -> tuple[list[Any], list[list[Any]]]:
        """Sources to predict from, and for each its references."""
        found = list(examples)
        return [example.source for example in found], [[example.target] for example in found]

    def measure(
        self, predictions: list[Any], references: list[list[Any]], sources: Sequence[Any] = ()
    ) -> dict[str, float]:
        """Every metric of the task; some look at the sources, too."""
        return {}

    def higher_is_better(self, name: str) -> bool:
        """Whether a metric is something to have much of."""
        known = ", ".join(("loss", "perplexity", *self.metrics))
        raise SeqloomError(f'train.select_by = "{name}": not measured by this task; expected one of {known}')
