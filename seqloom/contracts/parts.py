"""What the parts of a model must be able to do: cells, attention, encoders, decoders, heads."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from seqloom.contracts.data import Task
from seqloom.contracts.search import Stepper
from seqloom.errors import SeqloomError
from seqloom.types import Memory, Output, Padded, State, over_tensors

SOURCES = {"pictures": "image", "films": "video"}  # codec and encoder of sources that are no sequences


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

        Outputs beyond it mean nothing: running all rows to the longest is cheaper than holding some at every step.
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

    output_size: int  # of a context vector
    monotonic: ClassVar[bool] = False  # never looks back; its weights may sum to less than 1
    uses_positions: ClassVar[bool] = False  # weights depend on where a state is, not only on what it is

    @abstractmethod
    def prepare(self, memory: Memory) -> Memory:
        """Project the keys once per source, not once per step."""

    def start(self, memory: Memory) -> State:
        """Its state between queries: empty, for most."""
        return {}

    @abstractmethod
    def forward(
        self, query: Tensor, memory: Memory, state: State, weights: bool = False, lengths: Tensor | None = None
    ) -> tuple[Tensor, State, Tensor | None]:
        """Contexts (rows, Q, output_size), the state, and on request the weights (rows, heads, Q, T).

        Axis 1 of the query is time. `rows` is a multiple of the memory's: rows of one source are adjacent. `lengths`,
        (rows,), says how many queries of a row are real, if not all: the state is the one after the last of these.
        """

    def hold_back(self, scores: Tensor, state: State, memory: Memory) -> Tensor:
        """The scores, -inf in rows whose last query waits for more of a memory that is not closed.  (rows, V)"""
        return scores

    def states_read(self, state: State, memory: Memory) -> Tensor | None:
        """How many states of the source each row's last query has passed or looked at; None: all.  (rows,)"""
        return None

    def first_needed(self, state: State) -> int:
        """The first state of the source that any row may still look at, counted from the source's beginning."""
        return 0


class Encoder(nn.Module, ABC):
    """From a source to a memory."""

    output_size: int
    stride: int = 1  # how many inputs a state of its memory stands for
    grid: tuple[int, int] | None = None  # rows and columns, where its states are places of a picture, row by row
    first_phase: float = 0.0  # the longest share of a training in which it reads otherwise; 0: none
    first_rate: float = 1.0  # the factor of the learning rate in that phase
    modality: ClassVar[tuple[str, ...]] = ("embedding",)  # depends on the data; tasks share all else; (): nothing
    reads: ClassVar[Literal["sequences", "pictures", "films"]] = "sequences"

    @abstractmethod
    def forward(self, source: Padded, attention: bool = False) -> Memory:
        """Read the whole source. On request, leave the attention in extra["attention"] (B, layers, heads, T, T)."""

    def count_states(self, length: int) -> int:
        """How many states the memory of a source of this length has; of a divided source, of so many parts."""
        return -(-length // self.stride)

    @property
    def one_state_per_token(self) -> bool:
        return self.count_states(100) == 100

    def suit(self, task: Task) -> None:
        """Raise a ValueError, one line, for a task whose sources it cannot read."""
        source = task.source
        if source is None:
            return
        kind = "sequences" if source.shape is None else "films" if source.moving else "pictures"
        if kind != self.reads:
            if kind not in SOURCES:
                raise ValueError(f'reads {self.reads}: set task.source.type = "{SOURCES[self.reads]}"')
            raise ValueError(f'reads {self.reads}, and these sources are {kind}: take "{SOURCES[kind]}"')
        if source.parts:
            inputs = " and ".join(source.parts)
            raise ValueError(f'reads one input, and these sources have {inputs} beside it: take "several" around it')
        if source.nested == "sentence":
            raise ValueError('reads sequences, and a story is a table of sentences: take "memory_network" or "reader"')
        if source.nested == "word":
            raise ValueError('reads sequences, and these sources are tables of letters: take "spelling" around it')

    @property
    def streams(self) -> bool:
        """Whether it can read a source as it arrives: then it has `start` and `extend`."""
        return False

    def start(self, rows: int) -> State:
        """The state before the first input."""
        raise self.no_stream()

    def extend(self, chunk: Padded, state: State, closed: bool) -> tuple[Memory, State]:
        """The memory of some more input alone, none of it padding; perhaps empty while more must come first.

        All chunks together are the memory of the whole source, however it is cut.
        """
        raise self.no_stream()

    def no_stream(self) -> SeqloomError:
        kind = type(self).__name__.lower()
        return SeqloomError(f"{kind}: this encoder reads the end of a source before its beginning, so it cannot stream")


class Decoder(nn.Module, Stepper):
    """From a memory to an output, one token at a time. A language model is a decoder on an empty memory."""

    grows: ClassVar[bool] = False  # its state grows with every token (a KV cache): it cannot be carried on for ever
    hidden_size: int  # of what the last projection sees, Output.hidden
    trained_by: ClassVar[str] = ""  # the one objective that can train it; empty: all
    chooses: ClassVar[str] = ""  # tokens beyond the vocabulary: "places" of the source, or "copies" of its words
    reads_source: ClassVar[bool] = False  # it needs the source itself: the memory has it as parts["source"]
    features: int | None = None  # inputs are vectors so wide, (rows, F), and the scores describe the next one
    unknown: tuple[int, int] | None = None  # (first, unk): source tokens from `first` on are encoded as `unk`
    endless: ClassVar[bool] = False  # never writes a special token: only their length ends its outputs
    modality: ClassVar[tuple[str, ...]] = ()  # depends on the data; tasks share all else; (): nothing

    def __init__(
        self,
        *,
        bos: int | None = None,
        eos: int | None = None,
        blank: int | None = None,
        lengths: tuple[float, int] | None = None,
        memory_size: int | None = None,
    ):
        """What decoders share. `lengths` are length_ratio and length_offset; `memory_size` is given by a decoder that
        needs an encoder: 0 is refused.
        """
        super().__init__()
        if memory_size == 0:
            kind = type(self).__name__.lower()
            raise ValueError(f"{kind} reads a source: add [encoder] and task.source, or take another decoder")
        if bos is not None:
            self.bos, self.eos = bos, eos
        if blank is not None:
            self.blanks = (blank,)
        if lengths is not None:
            self.length_ratio, self.length_offset = lengths

    @abstractmethod
    def prepare(self, memory: Memory) -> Memory:
        """Whatever can be computed once per source."""

    @abstractmethod
    def start(self, memory: Memory) -> State:
        """The state before the first token, one row per source."""

    @abstractmethod
    def step(self, token: Tensor, state: State, memory: Memory) -> tuple[Tensor, State]:
        """Logits of the next token after `token`.  (rows,) -> (rows, V)

        A token may be a mixture, (rows, V): how much of each token. It is read as the mean of their embeddings.
        """

    @abstractmethod
    def forward(self, memory: Memory, inputs: Padded, state: State | None = None, attention: bool = False) -> Output:
        """All steps at once, inputs given. The memory is prepared; inputs may have several rows per source."""

    def log_prob(self, memory: Memory, inputs: Padded, targets: Padded) -> Tensor:
        """The log-probability of each output: BOS y1 .. yn as inputs, y1 .. yn EOS as targets.  (rows,)"""
        scores = self(memory, inputs).scores
        log_probs = scores.log_softmax(-1, dtype=torch.promote_types(scores.dtype, torch.float32))
        chosen = log_probs.gather(-1, targets.values[:, :, None])[:, :, 0]
        return chosen.masked_fill(~targets.mask, 0).sum(1)

    def suit(self, task: Task, encoder: Encoder | None) -> None:
        """Raise a ValueError, one line, for a task or an encoder that does not fit."""
        target, longest = task.target, getattr(self, "longest", None)
        if target.chooses != self.chooses:
            wanted = {"places": 'decoder.type = "pointer"', "copies": 'decoder.type = "copy"'}
            able = {
                "places": 'task.target.type = "places"',
                "copies": "task.copy = true",
                "": "targets of its own tokens",
            }
            hint = f"; for these targets set {wanted[target.chooses]}" if target.chooses else ""
            raise ValueError(f"needs {able[self.chooses]}, not {able[target.chooses]}{hint}")
        if self.endless and (task.eos is not None or not target.endless or target.is_vectors):
            raise ValueError(
                'writes what has no end of its own: set task.type = "series" and a target such as "pixels"'
            )
        if task.eos is None and task.source is not None and task.at_once:
            raise ValueError(
                'writes token by token, but an answer is given at once: take a head, such as "label" or "tags"'
            )
        if self.reads_source and task.source is not None and task.source.nested:
            raise ValueError("chooses elements of a source, and a story has none; take another decoder")
        if self.reads_source and encoder is not None and not encoder.one_state_per_token:
            made = f"this encoder makes {encoder.count_states(100)} of 100 tokens"
            raise ValueError(f'needs one encoder state per token, but {made}; take encoder.type = "recurrent"')
        if task.carry and self.grows:
            raise ValueError("keeps everything it has read, so it cannot carry its state: set task.carry = false")
        if longest is not None and task.window > longest:
            raise ValueError(
                f"has learned positions up to longest = {longest}: raise it to task.window = {task.window}"
            )


class Online(Decoder):
    """A decoder that writes while it reads: one token is the blank, which advances to the next frame.

    Its state has "frame" (rows,): how many states of the memory a row is done with, counted from the beginning of the
    source. After the last one, only EOS has a score. With `advances = "all"` every token advances, not just the blank.
    Entries of state["mixture"], if there are any, are probabilities: when a search merges two rows with the same output
    at the same frame, the merged row gets their mean, weighted by the probabilities of both. Everything else in such
    rows is equal, or nearly so, and that of the better row is kept.
    """

    online = True
    scores = "log_probs"

    @abstractmethod
    def step(self, token: Tensor, state: State, memory: Memory) -> tuple[Tensor, State]:
        """Log-probabilities of what may follow `token` at the row's frame; -inf for what may not."""

    def forward(self, memory: Memory, inputs: Padded, state: State | None = None, attention: bool = False) -> Output:
        return Stepper.__call__(self, memory, inputs, state, attention)

    def suit(self, task: Task, encoder: Encoder | None) -> None:
        super().suit(task, encoder)
        if task.bos == task.eos:
            raise ValueError('tells its first input from the end of a source: set task.start = "bos"')

    @property
    def blank(self) -> int:
        return self.blanks[0]

    def states_read(self, state: State, memory: Memory) -> Tensor:
        frame: Tensor = state["frame"]
        return torch.minimum(frame + 1, memory.offset + memory.lengths[memory.owner(len(frame))])

    def first_needed(self, state: State) -> int:
        return min(state["frame"].tolist(), default=sys.maxsize)


class Head(Decoder):
    """A decoder without step: its whole output comes at once, and there is nothing to search."""

    eos = None
    per_token: ClassVar[bool] = False  # one output for each token of the source, not one for all

    @abstractmethod
    def answer(self, memory: Memory) -> Padded:
        """The output of each source of a prepared memory: tokens (B, U), or vectors (B, U, F)."""

    def prepare(self, memory: Memory) -> Memory:
        return memory

    def start(self, memory: Memory) -> State:
        return {}

    def step(self, token: Tensor, state: State, memory: Memory) -> tuple[Tensor, State]:
        raise SeqloomError(f"{type(self).__name__.lower()} answers at once: it has no step, and no search")

    def suit(self, task: Task, encoder: Encoder | None) -> None:
        if task.target.chooses:
            raise ValueError("gives one answer, and these targets choose from their source: take another decoder")
        if self.per_token != task.per_token:
            counts = ("one answer for a source", "one for each of its tokens")
            kinds = ('task.type = "answer"', 'task.type = "tagging"')
            raise ValueError(f"gives {counts[self.per_token]}: set {kinds[self.per_token]}")
