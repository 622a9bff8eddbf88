"""Neural Transducer: the source is read in blocks, and the tokens of each block are written before the next is read.

Jaitly et al. 2016. In each block a recurrent decoder, whose state is carried over, writes tokens and then a blank, the
end of the block. It attends only to the block and to `previous` blocks before it.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from seqloom.contracts import Attention, Cell, Online
from seqloom.nn.attention.additive import Additive
from seqloom.nn.cells.lstm import LSTM
from seqloom.nn.decoders.recurrent import Recurrent
from seqloom.nn.layers.embedding import embed
from seqloom.nn.ops.alignment import AlignedTargets, best_alignment, even_alignment, insert_blanks
from seqloom.types import Memory, Output, Padded, State, hold

# A row's status: its block may end or go on, must end, was the last, has not arrived.
OPEN, FULL, PAST_END, WAITING = range(4)


class NeuralTransducer(Online):
    """State: {"frame", "written": how many tokens of this block, "writer": the recurrent decoder's}.

    With `input_feeding`, as published, training is unrolled step by step; without, it is one pass. The last component
    of the hidden vectors is the row's status.
    """

    eos: int
    trained_by = "alignment"

    def __init__(
        self,
        *,
        vocabulary: int,
        memory_size: int,
        bos: int,
        eos: int,
        blank: int,
        block: int = 10,
        previous: int = 0,
        symbols_per_block: int = 4,
        embedding_size: int = 256,
        size: int = 256,
        layers: int = 1,
        cell: Callable[..., Cell] = LSTM,
        attention: Callable[..., Attention] = Additive,
        input_feeding: bool = True,
        residual: bool = False,
        dropout: float = 0.0,
    ):
        super().__init__(bos=bos, eos=eos, blank=blank, memory_size=memory_size)
        if block < 1 or previous < 0 or symbols_per_block < 1:
            raise ValueError(
                f"block = {block} and symbols_per_block = {symbols_per_block} must be 1 or more, "
                f"and previous = {previous} 0 or more"
            )
        self.block, self.previous, self.symbols_per_block = block, previous, symbols_per_block
        self.memory_size = memory_size
        self.writer = Recurrent(
            vocabulary=vocabulary,
            memory_size=memory_size,
            bos=bos,
            eos=eos,
            embedding_size=embedding_size,
            size=size,
            layers=layers,
            cell=cell,
            attention=attention,
            input_feeding=input_feeding,
            bridge="zero",  # no summary: the source has not been read yet
            residual=residual,
            dropout=dropout,
        )
        self.hidden_size = self.writer.hidden_size + 1

    def prepare(self, memory: Memory) -> Memory:
        return memory  # blocks are prepared one by one: a chunk of a stream need not be a block

    def limit(self, memory: Memory) -> Tensor:
        return self.block_count(memory) * self.symbols_per_block + 1

    def states_read(self, state: State, memory: Memory) -> Tensor:
        frame: Tensor = state["frame"]
        return torch.minimum(frame + self.block, memory.offset + memory.lengths[memory.owner(len(frame))])

    def first_needed(self, state: State) -> int:
        return max(super().first_needed(state) - self.previous * self.block, 0)

    def start(self, memory: Memory) -> State:
        zeros = torch.zeros_like(memory.lengths)
        return {"frame": zeros, "written": zeros, "writer": self.writer.start(self.prepared_windows(memory, zeros))}

    def step(self, token: Tensor, state: State, memory: Memory) -> tuple[Tensor, State]:
        state, status = self.advance_block(token, state, memory)
        frame = state["frame"].view(memory.rows, -1)
        if bool((frame == frame[:, :1]).all()):  # all rows of a source are in the same block: prepare it once
            frame = frame[:, :1]
        windows = self.prepared_windows(memory, frame.flatten())
        embedded = self.writer.dropout(embed(self.writer.embedding, token))
        before = self.reset_attention(token, state["writer"], windows)
        hidden, writer, _ = self.writer.advance(embedded, before, windows)
        return self.project(torch.cat([hidden, status.to(hidden.dtype)], dim=-1)), {**state, "writer": writer}

    def forward(self, memory: Memory, inputs: Padded, state: State | None = None, attention: bool = False) -> Output:
        rows, width = inputs.values.shape
        state = self.start_rows(memory, rows) if state is None else state
        now: State = {name: state[name] for name in ("frame", "written")}
        frames, statuses = [], []
        for time, token in enumerate(inputs.values.unbind(1)):
            after, status = self.advance_block(token, now, memory)
            frames.append(after["frame"])
            statuses.append(status)
            now = hold(inputs.lengths <= time, after, now)
        # the windows of all steps, one step after the other
        windows = self.windows(memory, torch.cat(frames), memory.owner(rows).repeat(width))
        embedded = self.writer.dropout(embed(self.writer.embedding, inputs.values))  # (rows, U, E)
        run = self.unroll if self.unrolls else self.run
        hidden, now["writer"], weights = run(embedded, inputs, state["writer"], windows, attention)
        maps = {}
        if weights is not None:
            maps["source"] = self.spread_weights(weights, torch.stack(frames, dim=1), memory)
        return Output(torch.cat([hidden, torch.stack(statuses, dim=1).to(hidden.dtype)], -1), self.project, now, maps)

    @property
    def unrolls(self) -> bool:
        """Whether a step needs the attention of the one before, so that training goes step by step."""
        return self.writer.unrolls or self.attention_has_state

    @property
    def attention_has_state(self) -> bool:
        """Whether the attention has a state, which starts anew with each block."""
        assert self.writer.attention is not None
        return bool(self.writer.attention.start(Memory.empty(0)))

    def run(
        self, embedded: Tensor, inputs: Padded, state: State, windows: Memory, weights: bool
    ) -> tuple[Tensor, State, Tensor | None]:
        """All steps at once: the whole recurrence first, then the whole attention."""
        assert self.writer.attention is not None
        hidden, layers = self.writer.stack.run(Padded(embedded, inputs.lengths), state["layers"])
        queries = hidden.transpose(0, 1).flatten(0, 1)[:, None]  # (U * rows, 1, size)
        context, _, weight = self.writer.attention(queries, self.writer.prepare(windows), {}, weights)
        context = context[:, 0].unflatten(0, (-1, len(hidden))).transpose(0, 1)  # (rows, U, C)
        if weight is not None:
            weight = weight[:, :, 0].unflatten(0, (-1, len(hidden))).movedim(0, 2)
        return self.writer.dropout(self.writer.join_context(hidden, context)), {**state, "layers": layers}, weight

    def unroll(
        self, embedded: Tensor, inputs: Padded, state: State, windows: Memory, weights: bool
    ) -> tuple[Tensor, State, Tensor | None]:
        """Step by step; a row that has ended keeps its state."""
        hiddens, maps = [], []
        rows, width = inputs.values.shape
        states, lengths = windows.states.unflatten(0, (width, rows)), windows.lengths.view(width, rows)
        for time, (vector, seen, length) in enumerate(zip(embedded.unbind(1), states.unbind(0), lengths.unbind(0))):
            window = self.writer.prepare(Memory(seen, length))
            before = self.reset_attention(inputs.values[:, time], state, window)
            hidden, after, weight = self.writer.advance(vector, before, window, weights)
            state = hold(inputs.lengths <= time, after, state)
            hiddens.append(hidden)
            if weight is not None:
                maps.append(weight)
        return torch.stack(hiddens, dim=1), state, torch.cat(maps, dim=2) if maps else None

    def advance_block(self, token: Tensor, state: State, memory: Memory) -> tuple[State, Tensor]:
        """Frame and token count after a token, and the status then (rows, 1)."""
        total = (memory.offset + memory.lengths).index_select(0, memory.owner(len(token)))
        ends = token == self.blank
        frame = torch.minimum(state["frame"] + self.block * ends, total)
        written = torch.where(ends | (token == self.bos), 0, state["written"] + 1)
        status = torch.where(written >= self.symbols_per_block, FULL, OPEN)
        if memory.closed:
            status = status.masked_fill(frame >= total, PAST_END)
        else:
            status = status.masked_fill(frame + self.block > total, WAITING)
        return {**state, "frame": frame, "written": written}, status[:, None]

    def reset_attention(self, token: Tensor, writer: State, windows: Memory) -> State:
        """The writer's state, with a fresh attention state after the end of a block."""
        if not self.attention_has_state:
            return writer
        assert self.writer.attention is not None
        fresh = self.writer.attention.start(windows.select(windows.owner(len(token))))
        return {**writer, "attention": hold(token != self.blank, fresh, writer["attention"])}

    def prepared_windows(self, memory: Memory, frame: Tensor) -> Memory:
        """The windows of rows at these frames, prepared."""
        return self.writer.prepare(self.windows(memory, frame))

    def windows(self, memory: Memory, frame: Tensor, owner: Tensor | None = None) -> Memory:
        """The states that rows at these frames attend to, not yet prepared.  (rows, width, D)"""
        rows = memory.owner(len(frame)) if owner is None else owner
        states = memory.states if memory.states.shape[1] else memory.states.new_zeros(memory.rows, 1, self.memory_size)
        until = torch.minimum(frame + self.block, (memory.offset + memory.lengths).index_select(0, rows))
        # A row that waits or has ended has fixed scores: any window will do, but not an empty one.
        lengths = (until - self.window_start(frame)).clamp(min=1)
        return Memory(states[rows[:, None], self.window_positions(frame, memory)], lengths)

    def window_start(self, frame: Tensor) -> Tensor:
        """The first state of the windows at these frames."""
        return (frame - self.previous * self.block).clamp(min=0)

    def window_positions(self, frame: Tensor, memory: Memory) -> Tensor:
        """Positions in the memory of the states of each window.  (...) -> (..., width)"""
        width = torch.arange((1 + self.previous) * self.block, device=frame.device)
        positions = self.window_start(frame)[..., None] - memory.offset + width
        return positions.clamp(0, max(memory.states.shape[1] - 1, 0))

    def spread_weights(self, weights: Tensor, frame: Tensor, memory: Memory) -> Tensor:
        """Weights within windows, as weights over the memory.  (rows, heads, U, width) -> (rows, 1, heads, U, T)"""
        whole = weights.new_zeros(*weights.shape[:3], memory.states.shape[1])
        return whole.scatter_add(3, self.window_positions(frame, memory)[:, None].expand_as(weights), weights)[:, None]

    def project(self, hidden: Tensor) -> Tensor:
        """Log-probabilities.  (..., hidden_size) -> (..., V)"""
        logits, status = self.writer.project(hidden[..., :-1]), hidden[..., -1:]
        vocabulary = torch.arange(logits.shape[-1], device=logits.device)
        never = (vocabulary == self.bos) | (vocabulary == self.eos)
        scores = logits.masked_fill(never, float("-inf")).log_softmax(-1)
        for forced, token in ((FULL, self.blank), (PAST_END, self.eos), (WAITING, None)):
            certain = torch.where(vocabulary == token, 0.0, float("-inf")) if token is not None else float("-inf")
            scores = torch.where(status == forced, certain, scores)
        return scores

    # -- alignments

    def block_count(self, memory: Memory) -> Tensor:
        """How many blocks each source has.  (B,)"""
        return (memory.offset + memory.lengths + self.block - 1) // self.block

    def align(self, memory: Memory, targets: Padded, *, even: bool = False, beam_size: int = 0) -> AlignedTargets:
        """Targets, one row per source, with the ends of blocks at their best positions, or evenly spread."""
        blocks = self.block_count(memory)
        possible = targets.lengths - 1 <= blocks * self.symbols_per_block
        if even:
            counts = even_alignment(targets, blocks)
        else:
            counts = best_alignment(self, memory, targets, blocks, self.symbols_per_block, beam_size)
        return insert_blanks(targets, counts, blocks, self.bos, self.blank, possible)

    def log_prob(self, memory: Memory, inputs: Padded, targets: Padded) -> Tensor:
        """Of the best alignment found: a lower bound of the log-probability of all alignments together."""
        memory = memory.select(memory.owner(len(targets.lengths)))
        aligned = self.align(memory, targets)
        total = super().log_prob(memory, aligned.inputs, aligned.targets)
        return total.masked_fill(~aligned.possible, float("-inf"))
