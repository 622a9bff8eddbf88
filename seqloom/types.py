"""The records that travel between the parts: padded values, memory, batch, output, loss, hypothesis.

Everything here is data. A state is a dictionary of tensors whose first axis is the row; one row is
one live hypothesis. Nothing is ever changed in place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

State = dict[str, Any]  # values: Tensor with rows first, or a nested State


def over_tensors(function: Callable[..., Tensor], *states: State) -> State:
    """Apply a function to the tensors that stand in the same place of each state."""
    first = states[0]
    return {
        name: over_tensors(function, *(state[name] for state in states))
        if isinstance(value, dict)
        else function(*(state[name] for state in states))
        for name, value in first.items()
    }


def select(state: State, rows: Tensor) -> State:
    """The state of the given rows, in that order: how a search re-ranks its hypotheses."""
    return over_tensors(lambda value: value.index_select(0, rows), state)


def flatten(state: State, prefix: str = "") -> dict[str, Tensor]:
    """{"layers": {"0": {"hidden": h}}} -> {"layers/0/hidden": h}, for files; a name has no slash."""
    flat: dict[str, Tensor] = {}
    for name, value in state.items():
        flat |= flatten(value, f"{prefix}{name}/") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return flat


def nest(flat: dict[str, Tensor]) -> State:
    """The inverse of `flatten`, but for states that were empty."""
    state: State = {}
    for key, value in flat.items():
        *path, last = key.split("/")
        inner = state
        for name in path:
            inner = inner.setdefault(name, {})
        inner[last] = value
    return state


def detach(state: State) -> State:
    """The same values without their history: where truncated back-propagation stops."""
    return over_tensors(Tensor.detach, state)


def hold(mask: Tensor, new: State, old: State) -> State:
    """The new state, except that the rows in the mask keep the old one.

    Axis 1 may have grown (caches): an old row is filled up with zeros, which nobody reads.
    """

    def choose(after: Tensor, before: Tensor) -> Tensor:
        if after.dim() > 1 and after.shape[1] > before.shape[1]:
            grown = before.new_zeros(before.shape[0], after.shape[1] - before.shape[1], *before.shape[2:])
            before = torch.cat([before, grown], dim=1)
        return torch.where(mask.view(-1, *[1] * (after.dim() - 1)), before, after)

    return over_tensors(choose, new, old)


@dataclass(frozen=True)
class Padded:
    """Sequences of different lengths in one tensor, padded at the end."""

    values: Tensor  # (B, T, ...)
    lengths: Tensor  # (B,)

    @property
    def mask(self) -> Tensor:
        """True where a value is real.  (B, T)"""
        return positions_below(self.lengths, self.values.shape[1])

    @classmethod
    def stack(cls, sequences: Sequence[Tensor], padding: float = 0) -> Padded:
        """Pad sequences to the longest of them."""
        lengths = torch.tensor([len(sequence) for sequence in sequences])
        return cls(torch.nn.utils.rnn.pad_sequence(list(sequences), True, padding), lengths)

    def to(self, device: torch.device | str) -> Padded:
        return Padded(self.values.to(device, non_blocking=True), self.lengths.to(device, non_blocking=True))


def positions_below(lengths: Tensor, width: int) -> Tensor:
    """True at the first `length` positions of each row.  (B,) -> (B, width)"""
    return torch.arange(width, device=lengths.device) < lengths[:, None]


@dataclass(frozen=True)
class Memory:
    """What an encoder knows of its source, and what attentions have prepared from it."""

    states: Tensor  # (B, T, D)
    lengths: Tensor  # (B,)
    final: State = field(default_factory=dict)  # "summary": (B, D); recurrent encoders add "layers"
    extra: State = field(default_factory=dict)  # position-wise entries are (B, T, ...)
    parts: dict[str, Memory] = field(default_factory=dict)  # further inputs, each attended on its own
    closed: bool = True  # False while more input may come

    @classmethod
    def empty(cls, rows: int, device: torch.device | str = "cpu") -> Memory:
        """The memory of a language model: as many rows as wanted, nothing to read."""
        return cls(torch.zeros(rows, 0, 0, device=device), torch.zeros(rows, dtype=torch.long, device=device))

    @property
    def rows(self) -> int:
        return self.states.shape[0]

    @property
    def mask(self) -> Tensor:
        """True where a state is real.  (B, T)"""
        return positions_below(self.lengths, self.states.shape[1])

    def owner(self, rows: int) -> Tensor:
        """Which entry each of the rows reads: rows of one source stand together.  (rows,)"""
        return torch.arange(rows, device=self.states.device) // (rows // max(self.rows, 1))

    def select(self, entries: Tensor) -> Memory:
        """The memory of some sources only, for a search whose other sentences are finished."""
        return replace(
            self,
            states=self.states.index_select(0, entries),
            lengths=self.lengths.index_select(0, entries),
            final=select(self.final, entries),
            extra=select(self.extra, entries),
            parts={name: part.select(entries) for name, part in self.parts.items()},
        )

    def with_extra(self, **entries: Any) -> Memory:
        return replace(self, extra={**self.extra, **entries})

    def view(self, name: str) -> Memory:
        """This memory as one of several attentions prepared it: its extra is ours under that name."""
        return replace(self, extra=self.extra[name])


@dataclass(frozen=True)
class Example:
    """One pair as a reader found it. A language model's example has no source."""

    source: Any
    target: Any
    line: int = 0


@dataclass(frozen=True)
class Batch:
    """What an objective sees: the source, the inputs of teacher forcing, the targets one step later."""

    source: Padded | None  # None for language models
    inputs: Padded  # (B, U): BOS y1 .. yn
    targets: Padded  # (B, U): y1 .. yn EOS
    examples: tuple[int, ...] = ()  # row numbers in the corpus
    extra: State = field(default_factory=dict)
    carry: bool = False  # another batch goes on where this one stops, and starts from the state it leaves
    state: State | None = None  # of the decoder, left by the batch before; None: this one is the first

    def to(self, device: torch.device | str) -> Batch:
        return replace(
            self,
            source=self.source and self.source.to(device),
            inputs=self.inputs.to(device),
            targets=self.targets.to(device),
            extra=over_tensors(lambda value: value.to(device), self.extra),
        )


@dataclass(frozen=True)
class Output:
    """What a decoder makes of given inputs. Scores are made on demand: an objective wants those of real symbols."""

    hidden: Tensor  # (rows, U, D): what the last projection sees
    project: Callable[[Tensor], Tensor]  # (..., D) -> (..., V): logits, position by position
    state: State
    attention: dict[str, Tensor] = field(default_factory=dict)  # "source", "self": (rows, layers, heads, U, T)

    @property
    def scores(self) -> Tensor:
        """The logits of all positions.  (rows, U, V)"""
        return self.project(self.hidden)


@dataclass(frozen=True)
class Loss:
    """Sums, never means: over micro-batches and processes the loss is sum(total) / sum(count)."""

    total: Tensor  # scalar, with gradient
    count: Tensor  # scalar
    logs: dict[str, Tensor] = field(default_factory=dict)  # further sums, reported divided by count
    state: State | None = None  # what a batch that carries leaves for the next one, without gradient


@dataclass(frozen=True)
class Hypothesis:
    """One finished output of a search."""

    tokens: list[int]  # without BOS and EOS
    score: float  # what the search ranked by
    log_probs: list[float]  # one a token, EOS included where the decoder has one
