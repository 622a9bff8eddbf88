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

from seqloom.types import Batch, Hypothesis, Loss, Memory, Output, Padded, State, hold, select


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

        Cells with a fused kernel override this; the result is the same.
        """
        outputs = []
        running = inputs.mask
        for time, projected in enumerate(self.project(inputs.values).unbind(1)):
            output, new = self(projected, state)
            state = hold(~running[:, time], new, state)
            outputs.append(output)
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


class Objective(nn.Module, ABC):
    """What training makes small."""

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

    @abstractmethod
    def fit(self, values: Iterable[Any]) -> Self:
        """Learn whatever is learned from data: a vocabulary, a mean. Reads the values once, keeps none."""

    @abstractmethod
    def encode(self, value: Any, source: Any = None) -> Tensor:
        """The value as a tensor, (T,) or (T, F), without BOS and EOS."""

    @abstractmethod
    def decode(self, tensor: Tensor, source: Any = None) -> Any:
        """The value a tensor stands for."""

    @abstractmethod
    def save(self, folder: Path, name: str) -> None:
        """Write what `fit` learned into files of the folder whose names begin with `name`."""

    @abstractmethod
    def load(self, folder: Path, name: str) -> Self:
        """Read back what `save` wrote."""
