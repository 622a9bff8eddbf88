"""What a codec and a task must be able to do. Needs no torch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from seqloom.contracts.search import Constraint
from seqloom.errors import SeqloomError
from seqloom.types import Batch, Example, Padded


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

    vocabulary: int | None = None  # how many tokens, where values are tokens
    features: int | None = None  # how many components, where values are vectors
    seconds: float | None = None  # how long a position lasts, where values are sound
    chooses: ClassVar[str] = ""  # "places": of the source, and nothing else; "copies": words of the source, too
    nested: ClassVar[bool] = False  # a source is a table of tokens (T, W): a row a sentence
    names_files: ClassVar[bool] = False  # a value that is a text is the path of a file
    augment: Callable[[Padded, np.random.Generator], Padded] | None = None  # how sources are varied in training

    @property
    def is_vectors(self) -> bool:
        """Whether values are vectors rather than tokens; known before anything is fitted."""
        return bool(getattr(type(self), "features", None) or vars(self).get("features"))

    @abstractmethod
    def fit(self, values: Iterable[Any]) -> Self:
        """Learn whatever is learned from data: a vocabulary, a mean. Reads the values once, keeps none."""

    @abstractmethod
    def encode(self, value: Any, source: Any = None) -> np.ndarray:
        """The value as tokens, int64 (T,), or as vectors, float32 (T, F); without BOS and EOS."""

    def read(self, value: Any) -> np.ndarray:
        """The value as a source. Where outputs may be copied from it, unknown tokens are told apart."""
        return self.encode(value)

    @abstractmethod
    def decode(self, values: Any, source: Any = None) -> Any:
        """The value that tokens or vectors stand for: a list of them, or an array of any kind."""

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
    writes_unknown: bool = False  # outputs may hold the unknown token
    carry: bool = False  # a batch starts from the state that another left
    window: int = 0  # tokens of a running text that are read at once
    bos: ClassVar[int]  # what a decoder is given before the first token
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
        """A target, or the beginning of one, as tokens."""
        return self.target.encode(value)

    def decode(self, tokens: Any, source: Any = None) -> Any:
        """What the tokens of an output stand for."""
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
