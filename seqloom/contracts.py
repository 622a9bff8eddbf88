"""What each part must be able to do. A new part is one file with one subclass; the tests find it.

Parts are built from plain keyword arguments. A part that needs another of a size it alone knows
takes a factory: a class, or a `functools.partial` of one (`cell=LSTM`, `cell=partial(GRU, reset="before")`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from seqloom.errors import SeqloomError
from seqloom.types import Batch, Hypothesis, Loss, Memory, Output, Padded, State, over_tensors, select


class Cell(nn.Module, ABC):
    """One step of a recurrent network."""

    input_size: int
    size: int

    def __init__(self, *, input_size: int, size: int):
        super().__init__()
        self.input_size, self.size = input_size, size

    @abstractmethod
    def project(self, inputs: Tensor) -> Tensor:
        """The input half of the step, for all steps in one product.  (..., I) -> (..., G)"""

    @abstractmethod
    def start(self, rows: int) -> State:
        """The state before the first step: {"hidden": (rows, size), ...}, zeros."""

    @abstractmethod
    def forward(self, projected: Tensor, state: State) -> tuple[Tensor, State]:
        """One step.  (rows, G) -> (rows, size)"""

    def run(self, inputs: Padded, state: State) -> tuple[Tensor, State]:
        """All steps.  (rows, T, I) -> (rows, T, size), and the state at each row's own end.

        Outputs beyond it mean nothing: rows run on to the longest, which is cheaper than to hold some at every step.
        Cells with a fused kernel override this; the result is the same.
        """
        outputs, states = [], [state]
        for projected in self.project(inputs.values).unbind(1):
            output, state = self(projected, state)
            outputs.append(output)
            states.append(state)
        if int(inputs.lengths.min()) < len(outputs):
            rows = torch.arange(len(inputs.lengths), device=inputs.lengths.device)
            state = over_tensors(lambda *values: torch.stack(values)[inputs.lengths, rows], *states)
        return torch.stack(outputs, dim=1), state


class Attention(nn.Module, ABC):
    """Where a query looks in a memory."""

    output_size: int  # of a context

    @abstractmethod
    def prepare(self, memory: Memory) -> Memory:
        """Project the keys once a source, not once a step."""

    def start(self, memory: Memory) -> State:
        """What it remembers between queries: nothing, for most."""
        return {}

    @abstractmethod
    def forward(
        self, query: Tensor, memory: Memory, state: State, weights: bool = False
    ) -> tuple[Tensor, State, Tensor | None]:
        """Contexts (rows, Q, output_size), the state, and if asked the weights (rows, heads, Q, T).

        Axis 1 of the query is time. rows is a multiple of the memory's: rows of one source stand together.
        """


class Encoder(nn.Module, ABC):
    """From a source to a memory."""

    output_size: int

    @abstractmethod
    def forward(self, source: Padded, attention: bool = False) -> Memory:
        """Read the whole source. Asked for attention, leave it in extra["attention"] (B, layers, heads, T, T)."""


class Decoder(nn.Module, ABC):
    """From a memory to an output, one symbol at a time. A language model is a decoder on an empty memory."""

    bos: int
    eos: int | None  # None: only the limit ends an output
    silent: ClassVar[tuple[int, ...]] = ()  # symbols that are not part of the output
    grows: ClassVar[bool] = False  # its state grows with every symbol: nothing to hand on for ever
    length_ratio: float = 2.0  # the longest output, as length_ratio * source + length_offset
    length_offset: int = 10

    @abstractmethod
    def prepare(self, memory: Memory) -> Memory:
        """Whatever can be computed once a source."""

    @abstractmethod
    def start(self, memory: Memory) -> State:
        """The state before the first symbol, a row a source."""

    @abstractmethod
    def step(self, token: Tensor, state: State, memory: Memory) -> tuple[Tensor, State]:
        """Logits of the next symbol after `token`.  (rows,) -> (rows, V)"""

    @abstractmethod
    def forward(self, memory: Memory, inputs: Padded, state: State | None = None, attention: bool = False) -> Output:
        """All steps at once, inputs given. The memory is prepared; inputs may have n rows a source."""

    def limit(self, memory: Memory) -> Tensor:
        """How many symbols an output may have at most, EOS included.  (B,)"""
        return (memory.lengths * self.length_ratio).ceil().long() + self.length_offset

    def start_rows(self, memory: Memory, rows: int) -> State:
        """`start` for several rows a source."""
        return select(self.start(memory), memory.owner(rows))


class Head(Decoder):
    """A decoder without step: it says its whole output at once, and there is nothing to search."""

    eos = None

    @abstractmethod
    def answer(self, memory: Memory) -> Padded:
        """The output of each source of a prepared memory: symbols (B, U), or vectors (B, U, F)."""

    def prepare(self, memory: Memory) -> Memory:
        return memory

    def start(self, memory: Memory) -> State:
        return {}

    def step(self, token: Tensor, state: State, memory: Memory) -> tuple[Tensor, State]:
        raise SeqloomError(f"{type(self).__name__.lower()} says its output at once: it has no step, and no search")


class Objective(nn.Module, ABC):
    """What training makes small."""

    compares: ClassVar[str] = "symbols"  # or "vectors": what its targets are made of

    @abstractmethod
    def forward(self, model: Any, batch: Batch, progress: float) -> Loss:
        """The loss of a batch, as sums. Progress runs from 0 to 1 over the training."""


class Constraint(ABC):
    """Which symbols may follow: tours, bags, banned and required words, no repeats. One mechanism."""

    @abstractmethod
    def start(self, rows: int, limit: Tensor) -> State:
        """The state of hypotheses without a symbol; limit (rows,) is how many symbols each may have."""

    @abstractmethod
    def step(self, token: Tensor, state: State, vocabulary: int) -> tuple[Tensor, State]:
        """True where a symbol may follow the token just chosen (at first BOS).  (rows,) -> (rows, V)"""


class Search(ABC):
    """How outputs are found. Start, advance, finish: a stream may stop between."""

    @abstractmethod
    def start(
        self,
        decoder: Decoder,
        memory: Memory,
        prefix: Padded | None = None,
        constraints: Sequence[Constraint] = (),
    ) -> Any:
        """The beam before its first step; a prefix has been read by then."""

    @abstractmethod
    def advance(self, decoder: Decoder, memory: Memory, beam: Any) -> Any:
        """The beam after as many steps as the memory allows."""

    @abstractmethod
    def finish(self, decoder: Decoder, memory: Memory, beam: Any) -> list[list[Hypothesis]]:
        """For each source its hypotheses, best first."""

    def __call__(
        self,
        decoder: Decoder,
        memory: Memory,
        prefix: Padded | None = None,
        constraints: Sequence[Constraint] = (),
    ) -> list[list[Hypothesis]]:
        """From a prepared memory to hypotheses."""
        beam = self.advance(decoder, memory, self.start(decoder, memory, prefix, constraints))
        return self.finish(decoder, memory, beam)


class Codec(ABC):
    """One side of the data: raw value <-> tensor."""

    vocabulary: int | None = None  # how many symbols, where values are symbols
    features: int | None = None  # how many components, where values are vectors

    @abstractmethod
    def fit(self, values: Iterable[Any]) -> Self:
        """Learn whatever is learned from data: a vocabulary, a mean. Reads the values once, keeps none."""

    @abstractmethod
    def encode(self, value: Any, source: Any = None) -> Tensor:
        """The value as a tensor, (T,) or (T, F), without BOS and EOS."""

    @abstractmethod
    def decode(self, tensor: Tensor, source: Any = None) -> Any:
        """The value a tensor stands for."""

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
        """The batch of one entry of a plan."""

    def batch(self, sources: Sequence[Tensor] | None, targets: Sequence[Tensor]) -> Batch:
        """Encoded examples that stand each for itself."""
        raise NotImplementedError(f"{type(self).__name__} has no examples that stand alone")

    def encode(self, value: Any) -> Tensor:
        """A target, or the beginning of one, as symbols."""
        return self.target.encode(value)

    def decode(self, tokens: Tensor, source: Any = None) -> Any:
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

    def measure(self, predictions: list[Any], references: list[list[Any]]) -> dict[str, float]:
        """Every metric of the task."""
        return {}

    def higher_is_better(self, name: str) -> bool:
        """Whether a metric is something to have much of."""
        known = ", ".join(("loss", "perplexity", *self.metrics))
        raise SeqloomError(f'train.select_by = "{name}": not measured by this task; expected one of {known}')
