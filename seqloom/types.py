"""The records that travel between the parts: padded values, memory, batch, output, loss, hypothesis.

Everything here is data, in torch or numpy arrays. A state is a dictionary of arrays whose first axis is the row; one
row is one hypothesis of a beam. Nothing is ever changed in place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from seqloom.arrays import Array, as_tensor, like, namespace, take_rows

# Values: an array with rows first, an object with `index_select` and `hold` of its own, or a nested State.
State = dict[str, Any]
COST = "cost"  # of a State or of Memory.extra: what was spent so far, summed over positions; (rows,) or (rows, experts)
Costs = dict[str, dict[str, Array]]  # part, such as "encoder.layers.2" -> name of a cost -> that entry


def over_tensors(function: Callable[..., Any], *states: State) -> State:
    """Apply a function to the corresponding arrays of several states."""
    first = states[0]
    return {
        name: over_tensors(function, *(state[name] for state in states))
        if isinstance(value, dict)
        else function(*(state[name] for state in states))
        for name, value in first.items()
    }


def select(state: State, rows: Array) -> State:
    """The given rows of a state, in that order: how a search re-ranks its hypotheses."""
    return over_tensors(lambda value: take_rows(value, rows), state)


def flatten(state: State, prefix: str = "") -> dict[str, Array]:
    """{"layers": {"0": {"hidden": h}}} -> {"layers/0/hidden": h}, for files; a name has no slash."""
    flat: dict[str, Array] = {}
    for name, value in state.items():
        flat |= flatten(value, f"{prefix}{name}/") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return flat


def nest(flat: dict[str, Array]) -> State:
    """The inverse of `flatten`, except that empty states are lost."""
    state: State = {}
    for key, value in flat.items():
        *path, last = key.split("/")
        inner = state
        for name in path:
            inner = inner.setdefault(name, {})
        inner[last] = value
    return state


def costs(state: State, part: str = "") -> Costs:
    """The costs of all parts so far: entries under "cost" at any depth, by the path of the part that pays."""
    found: Costs = {}
    for name, value in state.items():
        if name == COST:
            found |= costs_below(value, part)
        elif isinstance(value, dict):
            found |= costs(value, path_of(part, name))
    return found


def costs_below(entries: State, part: str) -> Costs:
    """The costs of a part and of the parts within it, from its entry "cost"."""
    own = {name: value for name, value in entries.items() if not isinstance(value, dict)}
    found: Costs = {part: own} if own else {}
    for name, value in entries.items():
        if isinstance(value, dict):
            found |= costs_below(value, path_of(part, name))
    return found


def path_of(part: str, name: str) -> str:
    return f"{part}.{name}" if part else name


def sum_costs(spent: Costs) -> dict[str, Array]:
    """The costs that are one number per row, added up over all parts by name.  (rows,) each"""
    found: dict[str, Array] = {}
    for entries in spent.values():
        for name, cost in entries.items():
            if cost.ndim == 1:
                found[name] = found[name] + cost if name in found else cost
    return found


def detach(state: State) -> State:
    """The same values without gradients: where truncated back-propagation stops."""
    return over_tensors(lambda value: value.detach(), state)


def hold(mask: Array, new: State, old: State) -> State:
    """The new state, except that the rows in the mask keep the old one.

    Axis 1 may have grown: old rows are padded with zeros, which are never read.
    """
    xp = namespace(mask)

    def choose(after: Any, before: Any) -> Any:
        if hasattr(after, "hold"):
            return after.hold(mask, before)
        if after.ndim > 1 and after.shape[1] > before.shape[1]:
            before = xp.concat([before, xp.zeros_like(after[:, before.shape[1] :])], 1)
        return xp.where(mask.reshape(-1, *[1] * (after.ndim - 1)), before, after)

    return over_tensors(choose, new, old)


@dataclass(frozen=True)
class Composite:
    """One encoded source of several inputs, such as frames and the sound beside them. Any of them may be empty."""

    values: Array  # (T, ...)
    parts: dict[str, Array]  # by name, each with a length of its own

    def __len__(self) -> int:
        """The length of the longest input: what a batch must have room for."""
        return max(len(self.values), *map(len, self.parts.values()))


Encoded = Any  # a source as its codec reads it: an array, or a Composite


@dataclass(frozen=True)
class Padded:
    """Sequences of different lengths in one array, padded at the end."""

    values: Array  # (B, T, ...)
    lengths: Array  # (B,)
    parts: dict[str, Padded] = field(default_factory=dict)  # the same sources in other ways, with lengths of their own
    progress: float = 1.0  # of a source: the share of the training that is over; 1.0 in validation and inference
    first_phase: bool = False  # of a source: whether the training is in the first phase that some encoders have

    @property
    def mask(self) -> Array:
        """True where a value is real.  (B, T)"""
        return positions_below(self.lengths, self.values.shape[1])

    @classmethod
    def stack(cls, sequences: Sequence[Encoded], padding: float = 0) -> Padded:
        """Pad sequences to the longest of them: numpy arrays, as codecs return them, or tensors."""
        if isinstance(sequences[0], Composite):
            names = sequences[0].parts
            parts = {name: cls.stack([each.parts[name] for each in sequences], padding) for name in names}
            return replace(cls.stack([each.values for each in sequences], padding), parts=parts)
        first, lengths = sequences[0], [len(sequence) for sequence in sequences]
        shape = (len(lengths), max(lengths), *first.shape[1:])
        values = namespace(first).full(shape, padding, dtype=first.dtype, device=first.device)
        for row, (sequence, length) in enumerate(zip(sequences, lengths)):
            values[row, :length] = sequence
        return cls(values, like(first, lengths))

    def to(self, device: Any) -> Padded:
        """As tensors on a torch device."""
        parts = {name: part.to(device) for name, part in self.parts.items()}
        values, lengths = as_tensor(self.values, device), as_tensor(self.lengths, device)
        return Padded(values, lengths, parts, self.progress, self.first_phase)

    def like(self, array: Array) -> Padded:
        """As arrays of the same kind, on the same device."""
        return Padded(like(array, self.values), like(array, self.lengths))


def positions_below(lengths: Array, width: int) -> Array:
    """True at the first `length` positions of each row.  (B,) -> (B, width)"""
    return namespace(lengths).arange(width, device=lengths.device) < lengths[:, None]


def time_axis(entry: Array) -> int:
    """The time axis of a position-wise entry of a memory: (B, T, D), or with heads (B, heads, T, D)."""
    return 2 if entry.ndim == 4 else 1


def over_positions(function: Callable[..., Array], *extras: State) -> State:
    """Apply a function to position-wise entries of Memory.extra; of costs, which are cumulative, keep the last."""
    return {
        name: extras[-1][name]
        if name == COST
        else over_positions(function, *(extra[name] for extra in extras))
        if isinstance(value, dict)
        else function(*(extra[name] for extra in extras))
        for name, value in extras[0].items()
    }


@dataclass(frozen=True)
class Memory:
    """What an encoder made of a source, and what attentions have prepared from it."""

    states: Array  # (B, T, D)
    lengths: Array  # (B,)
    final: State = field(default_factory=dict)  # "summary": (B, D); recurrent encoders add "layers"
    extra: State = field(default_factory=dict)  # (B, T, D) or (B, heads, T, D), position by position; "cost": by part
    parts: dict[str, Memory] = field(default_factory=dict)  # further inputs, each attended on its own
    closed: bool = True  # False while more input may arrive
    offset: int = 0  # how many states before the first were dropped
    source_lengths: Array | None = (
        None  # (B,): for limits of outputs, where states do not follow the source's positions
    )

    @classmethod
    def empty(cls, rows: int, device: Any = "cpu") -> Memory:
        """The memory of a language model: so many rows without any states."""
        import torch

        return cls(torch.zeros(rows, 0, 0, device=device), torch.zeros(rows, dtype=torch.long, device=device))

    @property
    def rows(self) -> int:
        return self.states.shape[0]

    @property
    def mask(self) -> Array:
        """True where a state is real.  (B, T)"""
        return positions_below(self.lengths, self.states.shape[1])

    @property
    def costs(self) -> Costs:
        """What the encoder spent, by the part of it that pays."""
        return costs_below(self.extra.get(COST, {}), "")

    def owner(self, rows: int) -> Array:
        """Which source each of the rows belongs to: rows of one source are adjacent.  (rows,)"""
        entries = namespace(self.states).arange(rows, device=self.states.device)
        return entries // (rows // max(self.rows, 1))

    def select(self, entries: Array) -> Memory:
        """The memory of some sources only, for a search that has finished the others."""
        return replace(
            self,
            states=take_rows(self.states, entries),
            lengths=take_rows(self.lengths, entries),
            source_lengths=None if self.source_lengths is None else take_rows(self.source_lengths, entries),
            final=select(self.final, entries),
            extra=select(self.extra, entries),
            parts={name: part.select(entries) for name, part in self.parts.items()},
        )

    def append(self, chunk: Memory) -> Memory:
        """This memory and a prepared chunk that follows it, of the same sources; none is padded."""

        def joined(before: Array, after: Array) -> Array:
            return namespace(before).concat([before, after], time_axis(before))

        return replace(
            chunk,
            states=namespace(self.states).concat([self.states, chunk.states], 1),
            lengths=self.lengths + chunk.lengths,
            extra=over_positions(joined, self.extra, chunk.extra),
            parts={name: part.append(chunk.parts[name]) for name, part in self.parts.items()},
            offset=self.offset,
        )

    def forget(self, count: int) -> Memory:
        """This memory without its first states, which will not be read again."""

        def later(entry: Array) -> Array:
            return entry[(slice(None),) * time_axis(entry) + (slice(count, None),)]

        return replace(
            self,
            states=self.states[:, count:],
            lengths=self.lengths - count,
            extra=over_positions(later, self.extra),
            offset=self.offset + count,
        )

    def with_extra(self, **entries: Any) -> Memory:
        return replace(self, extra={**self.extra, **entries})

    def view(self, name: str) -> Memory:
        """This memory as one of several attentions prepared it: with the extra of that name."""
        return replace(self, extra=self.extra[name])


@dataclass(frozen=True)
class Example:
    """One pair as it was read. A language model's example has no source."""

    source: Any
    target: Any
    line: int = 0
    task: str = ""  # where a training has several


COUNTED = "counted"  # of Batch.extra: which targets count in the loss, (B, U); without it, all do


@dataclass(frozen=True)
class Batch:
    """What an objective gets: the source, the inputs of teacher forcing, the targets one step later."""

    source: Padded | None  # None for language models
    inputs: Padded  # (B, U): BOS y1 .. yn
    targets: Padded  # (B, U): y1 .. yn EOS
    examples: tuple[int, ...] = ()  # row numbers in the corpus
    extra: State = field(default_factory=dict)
    carry: bool = False  # the next batch continues where this one ends, from the state it leaves
    state: State | None = None  # the decoder's, left by the batch before; None for the first
    task: str = ""  # the one it belongs to, where a training has several

    def to(self, device: Any) -> Batch:
        """As tensors on a torch device."""
        return replace(
            self,
            source=self.source and self.source.to(device),
            inputs=self.inputs.to(device),
            targets=self.targets.to(device),
            extra=over_tensors(lambda value: as_tensor(value, device), self.extra),
        )

    def with_progress(self, progress: float, first_phase: bool = False) -> Batch:
        """This batch when that share of the training is over, for encoders that change over the training."""
        if self.source is None:
            return self
        return replace(self, source=replace(self.source, progress=progress, first_phase=first_phase))


@dataclass(frozen=True)
class Output:
    """What a decoder makes of given inputs. Scores are computed on demand, for objectives need only real positions."""

    hidden: Array  # (rows, U, D): what the last projection sees
    project: Callable[[Array], Array]  # (..., D) -> (..., V): logits, position by position
    state: State
    attention: dict[str, Array] = field(default_factory=dict)  # "source", "self": (rows, layers, heads, U, T)
    ready: Array | None = None  # (rows, U, V): logits that depend on the source too, so are computed already
    costs: Costs = field(default_factory=dict)  # of encoder and decoder: an objective may weigh them by name
    copied: Array | None = None  # (rows, U): the probability of copying; only with attention
    experts: dict[str, Array] = field(default_factory=dict)  # layer -> (rows, U, k): experts used; only with attention

    @property
    def scores(self) -> Array:
        """The logits of all positions.  (rows, U, V)"""
        return self.project(self.hidden) if self.ready is None else self.ready

    @property
    def positions(self) -> tuple[Array, Callable[[Array], Array]]:
        """Vectors and the function that turns each into scores; for ready scores, the identity."""
        return (self.hidden, self.project) if self.ready is None else (self.ready, lambda scores: scores)


@dataclass(frozen=True)
class Loss:
    """Sums, never means: over micro-batches and processes the loss is sum(total) / sum(count)."""

    total: Array  # scalar, with gradient
    count: Array  # scalar
    logs: dict[str, Array] = field(default_factory=dict)  # further sums, reported divided by count
    state: State | None = None  # what a batch leaves for the next one, without gradient


@dataclass(frozen=True)
class Hypothesis:
    """One finished output of a search."""

    tokens: list[int]  # without BOS and EOS
    score: float  # by which the search ranked
    log_probs: list[float]  # one per token, EOS included where the decoder has one
    attention: list[list[float]] | None = None  # on request: one row per token and EOS, one column per source token
    times: list[int] | None = None  # per token: how many states of the memory had been read; None: all
