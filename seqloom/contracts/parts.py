"""What the parts of a model must be able to do: cells, attention, encoders, decoders, heads."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn

from seqloom.contracts.search import Stepper
from seqloom.errors import SeqloomError
from seqloom.types import Memory, Output, Padded, State, over_tensors


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
    monotonic: ClassVar[bool] = False  # never looks back; weights may sum to less than 1: a query may find nothing

    @abstractmethod
    def prepare(self, memory: Memory) -> Memory:
        """Project the keys once a source, not once a step."""

    def start(self, memory: Memory) -> State:
        """What it remembers between queries: nothing, for most."""
        return {}

    @abstractmethod
    def forward(
        self, query: Tensor, memory: Memory, state: State, weights: bool = False, lengths: Tensor | None = None
    ) -> tuple[Tensor, State, Tensor | None]:
        """Contexts (rows, Q, output_size), the state, and if asked the weights (rows, heads, Q, T).

        Axis 1 of the query is time. rows is a multiple of the memory's: rows of one source stand together. Lengths,
        (rows,), say how many queries of a row are real, if not all: the state is that after the last of these.
        """

    def hold_back(self, scores: Tensor, state: State, memory: Memory) -> Tensor:
        """Scores, -inf in rows whose last query waits for more of a memory that is not closed.  (rows, V)"""
        return scores

    def states_read(self, state: State, memory: Memory) -> Tensor | None:
        """How many states of the source each row's last query has passed or looked at; None: all.  (rows,)"""
        return None

    def first_needed(self, state: State) -> int:
        """The first place of the source that any row may still look at, counted from the source's beginning."""
        return 0


class Encoder(nn.Module, ABC):
    """From a source to a memory."""

    output_size: int
    stride: int = 1  # how many inputs a state of its memory stands for
    nested: ClassVar[bool] = False  # it reads tables of tokens, (B, T, W): a row a sentence

    @abstractmethod
    def forward(self, source: Padded, attention: bool = False) -> Memory:
        """Read the whole source. Asked for attention, leave it in extra["attention"] (B, layers, heads, T, T)."""

    @property
    def streams(self) -> bool:
        """Whether it can read a source as it comes: then it has `start` and `extend`."""
        return False

    def start(self, rows: int) -> State:
        """The state before the first input."""
        raise SeqloomError(
            f"{type(self).__name__.lower()}: this encoder reads the end of a source before its beginning"
        )

    def extend(self, chunk: Padded, state: State, closed: bool) -> tuple[Memory, State]:
        """The memory of some more input alone, none of it padding; perhaps empty while more must come first.

        All chunks together are the memory of the whole source, whatever they are cut into.
        """
        raise SeqloomError(
            f"{type(self).__name__.lower()}: this encoder reads the end of a source before its beginning"
        )


class Decoder(nn.Module, Stepper):
    """From a memory to an output, one token at a time. A language model is a decoder on an empty memory."""

    grows: ClassVar[bool] = False  # its state grows with every token: nothing to hand on for ever
    hidden_size: int  # of what the last projection sees, Output.hidden
    trained_by: ClassVar[tuple[str, ...]] = ()  # the only objectives that can train it; none named: all that compare
    chooses: ClassVar[str] = ""  # tokens beyond the vocabulary: "places" of the source alone, or "copies" beside others
    reads_source: ClassVar[bool] = False  # it looks at the source itself: a memory has it as parts["source"]
    unknown: tuple[int, int] | None = None  # (first, unk): source tokens from the first on are read as unk

    @abstractmethod
    def prepare(self, memory: Memory) -> Memory:
        """Whatever can be computed once a source."""

    @abstractmethod
    def start(self, memory: Memory) -> State:
        """The state before the first token, a row a source."""

    @abstractmethod
    def step(self, token: Tensor, state: State, memory: Memory) -> tuple[Tensor, State]:
        """Logits of the next token after `token`.  (rows,) -> (rows, V)

        A token may be a mixture: (rows, V), how much of each token. It is read as the mean of their embeddings.
        """

    @abstractmethod
    def forward(self, memory: Memory, inputs: Padded, state: State | None = None, attention: bool = False) -> Output:
        """All steps at once, inputs given. The memory is prepared; inputs may have n rows a source."""

    def log_prob(self, memory: Memory, inputs: Padded, targets: Padded) -> Tensor:
        """The log-probability of each output: BOS y1 .. yn as inputs, y1 .. yn EOS as targets.  (rows,)"""
        scores = self(memory, inputs).scores
        log_probs = scores.log_softmax(-1, dtype=torch.promote_types(scores.dtype, torch.float32))
        chosen = log_probs.gather(-1, targets.values[:, :, None])[:, :, 0]
        return chosen.masked_fill(~targets.mask, 0).sum(1)


class Online(Decoder):
    """A decoder that writes while it reads: one token is silent, and goes on to the next input.

    Its state has "frame" (rows,): how many states of the memory a row is done with, counted from the beginning of the
    source. After the last one, EOS alone has a score. With `advances = "all"` each token, silent or not, goes on.
    Entries of state["mixture"], if there is one, are probabilities: where a search finds two rows with the same output
    at the same time and makes one of them, it has their mean, each weighted by what its row is worth. All else of two
    such rows is the same, or nearly so, and that of the better one is kept.
    """

    online = True
    scores = "log_probs"

    @abstractmethod
    def step(self, token: Tensor, state: State, memory: Memory) -> tuple[Tensor, State]:
        """Log-probabilities of what may come after `token` where the row stands; -inf for what may not."""

    def forward(self, memory: Memory, inputs: Padded, state: State | None = None, attention: bool = False) -> Output:
        return Stepper.__call__(self, memory, inputs, state, attention)

    def states_read(self, state: State, memory: Memory) -> Tensor:
        frame: Tensor = state["frame"]
        return torch.minimum(frame + 1, memory.offset + memory.lengths[memory.owner(len(frame))])

    def first_needed(self, state: State) -> int:
        return min(state["frame"].tolist(), default=sys.maxsize)


class Head(Decoder):
    """A decoder without step: it says its whole output at once, and there is nothing to search."""

    eos = None

    @abstractmethod
    def answer(self, memory: Memory) -> Padded:
        """The output of each source of a prepared memory: tokens (B, U), or vectors (B, U, F)."""

    def prepare(self, memory: Memory) -> Memory:
        return memory

    def start(self, memory: Memory) -> State:
        return {}

    def step(self, token: Tensor, state: State, memory: Memory) -> tuple[Tensor, State]:
        raise SeqloomError(f"{type(self).__name__.lower()} says its output at once: it has no step, and no search")
