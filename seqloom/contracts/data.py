"""What a codec and a task must be able to do. Needs no torch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np

from seqloom.contracts.search import Constraint
from seqloom.errors import SeqloomError, show
from seqloom.types import Batch, Encoded, Example, Padded


class Feed(ABC):
    """One value as it arrives. All that it returns, concatenated, is what `encode` returns for the whole value."""

    @abstractmethod
    def feed(self, raw: Any) -> np.ndarray:
        """Takes some more of the value, perhaps nothing; returns the positions that are complete now."""

    @abstractmethod
    def close(self) -> np.ndarray:
        """The value is complete: returns the remaining positions."""


class Codec(ABC):
    """One side of the data: raw value <-> numpy array."""

    vocabulary: int | None = None  # how many tokens there are, where values are tokens
    features: int | None = None  # how many components a vector has, where values are vectors
    seconds: float | None = None  # how long a position is, where values are sound
    shape: tuple[int, int, int] | None = None  # height, width and channels, where values are pictures
    moving: ClassVar[bool] = False  # values are films: pictures that follow each other, (T, H, W, C)
    parts: Mapping[str, Codec] = MappingProxyType({})  # of inputs that a source has beside its own, such as sound
    canvas: tuple[int, int, int] | None = None  # height, width and channels, where tokens are the pixels of a picture
    frames: int | None = None  # how many such pictures a value has at most, where it is a film
    endless: ClassVar[bool] = False  # values have no end of their own, as pixels or samples
    chooses: ClassVar[str] = ""  # "places": only places of the source; "copies": words of the source as well
    nested: ClassVar[str] = ""  # a source is a table of tokens (T, W): what a row of it is, "sentence" or "word"
    divided: ClassVar[str] = ""  # EOS ends each part of a source: what a part is, "turn"
    names_files: ClassVar[bool] = False  # a text value is the path of a file
    suffix: ClassVar[str] = ""  # how the name of a file ends that holds one value, such as ".wav"; "": there is none
    augment: Callable[[Padded, np.random.Generator], Padded] | None = None  # augmentation of sources in training

    @property
    def is_vectors(self) -> bool:
        """Whether values are vectors rather than tokens; known before anything is fitted."""
        return bool(getattr(type(self), "features", None) or vars(self).get("features"))

    @abstractmethod
    def fit(self, values: Iterable[Any]) -> Self:
        """Learn from data what is needed: a vocabulary, a mean. Reads the values once and keeps none."""

    @abstractmethod
    def encode(self, value: Any, source: Any = None) -> np.ndarray:
        """The value as tokens, int64 (T,), as vectors, float32 (T, F), or as a picture, uint8 (H, W, C).

        Tokens are without BOS and EOS. The positions of a picture are its rows; those of a film, uint8 (T, H, W, C),
        its frames.
        """

    def read(self, value: Any) -> Encoded:
        """The value as a source. Where outputs may be copied from it, unknown words get ids of their own; with `parts`,
        it is all inputs of the source."""
        return self.encode(value)

    @abstractmethod
    def decode(self, values: Any, source: Any = None) -> Any:
        """The value of tokens or vectors, given as a list or as any array."""

    def content(self, value: Any) -> Any:
        """What identifies a value, for hashing. Raises UnreadableError for what could never be encoded."""
        return value

    def cut(self, value: Any, longest: int) -> Any:
        """The value without what is beyond so many characters or items."""
        return value[:longest]

    def elements(self, value: Any) -> int | None:
        """How many positions a value has, where that is known before fitting."""
        return None

    def notes(self) -> list[str]:
        """What was left out of sources since the last call, in sentences, for the person whose data it is."""
        return []

    def feed(self) -> Feed:
        """Takes a value piece by piece."""
        raise SeqloomError(f"{type(self).__name__.lower()} cannot be streamed: give whole sources to `predict`")

    def line(self, value: Any) -> str:
        """The value as a line of a file; line breaks within it are spaces."""
        return str(value).replace("\n", " ").replace("\r", " ")

    def to_file(self, value: Any) -> bytes:
        """The content of a file that holds the value, whose name ends with `suffix`."""
        raise SeqloomError(f"{type(self).__name__.lower()} has no file format of its own: write its values as lines")

    def side_by_side(self, values: Sequence[Any]) -> Any:
        """Several values as one that shows them all, or None: a file holds one."""
        return None

    def picture(self, values: np.ndarray) -> bytes:
        """A picture, uint8 (H, W, C), as a PNG file."""
        raise SeqloomError(f"{type(self).__name__.lower()} has no picture of its values")

    @abstractmethod
    def save(self, folder: Path, name: str) -> None:
        """Write what `fit` learned into files of the folder whose names begin with `name`."""

    @abstractmethod
    def load(self, folder: Path, name: str) -> Self:
        """Read back what `save` wrote."""


def augment(codec: Codec, source: Padded, chance: np.random.Generator) -> Padded:
    """Sources as training sees them: each part augmented by its codec, then all of them together."""
    parts = {name: augment(part, source.parts[name], chance) for name, part in codec.parts.items()}
    source = replace(source, parts={**source.parts, **parts}) if parts else source
    return source if codec.augment is None else codec.augment(source, chance)


class Task(ABC):
    """What is learned: the codecs of both sides, how examples become batches, and the metrics."""

    source: Codec | None = None  # None for language models
    target: Codec
    joint: bool = False  # one codec for both sides
    metrics: tuple[str, ...] = ()
    running: ClassVar[bool] = False  # the examples are the lines of one running text
    reads_itself: ClassVar[bool] = False  # sources are made of the targets, in training: the data have one column
    constrained: bool = False  # it has constraints of its own
    at_once: ClassVar[bool] = True  # an output without an end comes at once, not token by token
    per_token: ClassVar[bool] = False  # a target has one token for each token of its source
    writes_unknown: bool = False  # outputs may hold the unknown token
    carry: bool = False  # a batch starts from the state that the batch before left
    window: int = 0  # tokens of a running text per pass
    bos: int  # the decoder's first input
    eos: ClassVar[int | None]  # the token that ends an output; None: only its length does

    @classmethod
    def first_input(cls, table: Mapping[str, Any]) -> int:
        """`bos` of a task with these settings, before it is built."""
        return cls.bos

    @abstractmethod
    def plan(self, lengths: Any, tokens: int, seed: int, epoch: int, accumulate: int = 1) -> Any:
        """The batches of an epoch (data.batching.Plan), a pure function of the arguments."""

    @abstractmethod
    def in_order(self, lengths: Any, tokens: int) -> Any:
        """The batches of a validation."""

    @abstractmethod
    def collate(self, corpus: Any, rows: Any) -> Batch:
        """The batch of one entry of a plan, in tensors."""

    def batch(self, sources: Sequence[Encoded] | None, targets: Sequence[np.ndarray]) -> Batch:
        """A batch of encoded examples, in tensors."""
        raise SeqloomError(
            f"{type(self).__name__.lower()}: a running text has no single examples; score its lines instead"
        )

    @property
    def given(self) -> Codec | None:
        """The codec of the sources that data have; None where they have one column."""
        return None if self.reads_itself else self.source

    @property
    def augments(self) -> bool:
        """Whether sources are augmented in training."""
        codec = self.source
        return codec is not None and any(each.augment for each in (codec, *codec.parts.values()))

    def augment(self, batch: Batch, chance: np.random.Generator) -> Batch:
        """The batch with its sources augmented."""
        if batch.source is None or self.source is None or not self.augments:
            return batch
        return replace(batch, source=augment(self.source, batch.source, chance))

    def stand_in(self, codec: Any) -> None:  # noqa: B027  # most need no codec to make a batch
        """Make batches of random tokens, as many as this has, in place of a codec that has not been fitted."""

    def notes(self, lengths: np.ndarray) -> list[str]:
        """What a training on targets of these lengths does otherwise than was asked for, in sentences."""
        return []

    def constraints(self, source: Padded | None) -> list[Constraint]:
        """The constraints that the task puts on outputs for these sources."""
        return []

    def check(self, example: Example) -> None:  # noqa: B027  # most accept every example
        """Raise UnreadableError for an example whose sides are readable but do not fit each other."""

    def encode(self, value: Any) -> np.ndarray:
        """A target, or a prefix of one, as tokens."""
        return self.target.encode(value)

    def decode(self, tokens: Any, source: Any = None) -> Any:
        """The value of an output's tokens."""
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
        """Every metric of the task; some look at the sources too."""
        return {}

    def higher_is_better(self, name: str) -> bool:
        """Whether higher is better."""
        known = ", ".join(("loss", "perplexity", *self.metrics))
        raise SeqloomError(f"train.select_by = {show(name)}: not measured by this task; expected one of {known}")
