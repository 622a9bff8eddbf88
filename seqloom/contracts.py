"""What each part must be able to do. A new part is one file with one subclass; the tests find it.

Parts are built from plain keyword arguments. A part that needs another of a size it alone knows
takes a factory: a class, or a `functools.partial` of one (`cell=LSTM`, `cell=partial(GRU, reset="before")`).
Contracts that need no torch are in `seqloom/plain_contracts.py`, and can be imported from here as well.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from seqloom.errors import SeqloomError
from seqloom.plain_contracts import Codec, Constraint, Search, Stepper, Task
from seqloom.types import Batch, Loss, Memory, Output, Padded, State, over_tensors

__all__ = [
    "Attention",
    "Cell",
    "Codec",
    "Constraint",
    "Decoder",
    "Encoder",
    "Head",
    "Objective",
    "Search",
    "Stepper",
    "Task",
]


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


class Decoder(nn.Module, Stepper):
    """From a memory to an output, one symbol at a time. A language model is a decoder on an empty memory."""

    grows: ClassVar[bool] = False  # its state grows with every symbol: nothing to hand on for ever
    hidden_size: int  # of what the last projection sees, Output.hidden

    @abstractmethod
    def prepare(self, memory: Memory) -> Memory:
        """Whatever can be computed once a source."""

    @abstractmethod
    def start(self, memory: Memory) -> State:
        """The state before the first symbol, a row a source."""

    @abstractmethod
    def step(self, token: Tensor, state: State, memory: Memory) -> tuple[Tensor, State]:
        """Logits of the next symbol after `token`.  (rows,) -> (rows, V)

        A token may be a mixture: (rows, V), how much of each symbol. It is read as the mean of their embeddings.
        """

    @abstractmethod
    def forward(self, memory: Memory, inputs: Padded, state: State | None = None, attention: bool = False) -> Output:
        """All steps at once, inputs given. The memory is prepared; inputs may have n rows a source."""


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
    """What training makes small. Validated, all that compare symbols are the cross-entropy of the targets.

    A constructor may ask, by arguments without a default, for what the program knows: `vocabulary` or `features`,
    `hidden_size` of the decoder, `decode` (symbols -> value) and `constraints` (source -> those of the task).
    """

    compares: ClassVar[str] = "symbols"  # or "vectors": what its targets are made of
    improves: ClassVar[str] = "loss"  # or "outputs": then a metric, not the loss, tells the best checkpoint
    searched: ClassVar[dict[str, Any]] = {}  # settings that a search of its models must have

    @abstractmethod
    def forward(self, model: Any, batch: Batch, progress: float) -> Loss:
        """The loss of a batch, as sums. Progress runs from 0 to 1 over the training."""

    def suit(self, task: Task) -> None:
        """Complain, by a ValueError, of a task that it cannot train."""

    def prepare(self, batch: Batch, chance: np.random.Generator) -> Batch:
        """A batch as it is trained on: what is drawn without the model is drawn here, beside the training."""
        return batch
