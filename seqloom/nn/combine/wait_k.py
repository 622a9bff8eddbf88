"""Wait-k: a decoder around a decoder that writes a fixed number of inputs behind the source.

Ma et al. 2019, eq. 3: token t, counted from 0, is written as soon as min(k + t, |x|) states have been read; with a
ratio of inputs to outputs, min(k + floor(t * ratio), |x|), which catches up. It needs an encoder that reads one way.
The decoder may have been trained on whole sources, or better by the objective `wait_k`.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from seqloom.contracts import Decoder, Head
from seqloom.errors import SeqloomError
from seqloom.nn.layers.bridge import Bridge
from seqloom.nn.layers.prefix import last_state_read, prefix_memory, restrict_attention
from seqloom.nn.model import Model
from seqloom.types import Memory, Output, Padded, State, hold, positions_below


class WaitKDecoder(Decoder):
    """State: {"decoder": the inner decoder's, "written": (rows,)}.

    A decoder that starts from a summary of its source starts from the last state read so far.
    """

    online = True

    def __init__(self, *, decoder: Decoder, wait: int, ratio: float = 1.0):
        super().__init__()
        if not 1 <= wait <= 1_000_000 or not 0 <= ratio <= 1000:
            raise SeqloomError(f"wait = {wait}: expected 1 to 1,000,000, and ratio = {ratio}: expected 0 to 1,000")
        if isinstance(decoder, Head):
            raise SeqloomError(f"wait = {wait}: this run outputs no sequence; leave it out")
        if decoder.online:
            raise SeqloomError(f"wait = {wait}: this decoder decides itself when to write; leave it out")
        if decoder.reads_source or decoder.scores != "logits":
            raise SeqloomError(
                f"wait = {wait}: a decoder that copies, points or repeats needs the whole source; leave it out"
            )
        self.decoder, self.wait, self.ratio = decoder, wait, ratio
        self.bos, self.eos, self.hidden_size = decoder.bos, decoder.eos, decoder.hidden_size
        self.length_ratio, self.length_offset = decoder.length_ratio, decoder.length_offset
        bridges = {part.kind for part in decoder.modules() if isinstance(part, Bridge)} - {"zero"}
        for kind in bridges - {"dense"}:
            raise SeqloomError(f'wait = {wait}: decoder.bridge = "{kind}" needs all of the source; train with "zero"')
        summary_later = any(getattr(decoder, name, False) for name in ("feed_context", "deep_output"))
        self.needs_summary = bool(bridges) or summary_later
        self.parallel = not summary_later and not getattr(decoder, "unrolls", not decoder.grows)

    @classmethod
    def of(cls, model: Model, wait: int, ratio: float = 1.0) -> WaitKDecoder:
        """The decoder of a model, if its encoder reads one way."""
        if model.encoder is None:
            raise SeqloomError(f"wait = {wait}: this run is a language model and reads no source; leave it out")
        if not model.encoder.streams:
            raise SeqloomError(
                f"wait = {wait}: the encoder must read one way, from the beginning: "
                "train with encoder.bidirectional = false, or another encoder that streams"
            )
        return cls(decoder=model.decoder, wait=wait, ratio=ratio)

    def prepare(self, memory: Memory) -> Memory:
        return self.decoder.prepare(memory)

    def start(self, memory: Memory) -> State:
        if self.needs_summary and not memory.final["summary"].allclose(last_state_read(memory, memory.lengths)):
            raise SeqloomError(
                f"wait = {self.wait}: the summary this decoder starts from is not the encoder's last state; "
                'train with decoder.bridge = "zero"'
            )
        written = torch.zeros_like(memory.lengths)
        return {"decoder": self.decoder.start(self.visible_part(memory, written)), "written": written}

    def step(self, token: Tensor, state: State, memory: Memory) -> tuple[Tensor, State]:
        written = state["written"]
        part = self.visible_part(memory, written)
        scores, after = self.decoder.step(token, self.inner_state(state, part), part)
        if not memory.closed:
            waits = self.states_needed(written) > self.states_available(written, memory)
            scores = scores.masked_fill(waits[:, None], float("-inf"))
        return scores, {"decoder": after, "written": written + 1}

    def forward(self, memory: Memory, inputs: Padded, state: State | None = None, attention: bool = False) -> Output:
        rows, width = inputs.values.shape
        if state is None and self.parallel and rows == memory.rows:
            return self.run(memory, inputs, attention)
        state = self.start_rows(memory, rows) if state is None else state
        hidden, maps = [], []
        for time in range(width):  # each token attends to a different part of the memory
            part = self.visible_part(memory, state["written"])
            token = Padded(inputs.values[:, time : time + 1], torch.ones_like(inputs.lengths))
            output = self.decoder(part, token, self.inner_state(state, part), attention)
            state = hold(inputs.lengths <= time, {"decoder": output.state, "written": state["written"] + 1}, state)
            hidden.append(output.hidden)
            maps += [output.attention["source"]] if "source" in output.attention else []
        attention_maps = {"source": torch.cat(maps, dim=3)} if maps else {}  # (rows, layers, heads, U, T)
        return Output(torch.cat(hidden, dim=1), output.project, state, attention_maps)

    def run(self, memory: Memory, inputs: Padded, attention: bool) -> Output:
        """All tokens in one pass of the inner decoder, each query with its own mask."""
        start = self.start(memory)
        needed = self.states_needed(torch.arange(inputs.values.shape[1], device=inputs.values.device))  # (U,)
        counts = torch.minimum(needed, memory.lengths[:, None])  # (B, U)
        visible = positions_below(counts.flatten(), memory.states.shape[1]).view(*counts.shape, -1)  # (B, U, T)
        part = replace(memory, extra=restrict_attention(memory.extra, visible))
        output: Output = self.decoder(part, inputs, start["decoder"], attention)
        return replace(output, state={"decoder": output.state, "written": inputs.lengths})

    def limit(self, memory: Memory) -> Tensor:
        limit: Tensor = self.decoder.limit(memory)
        return limit

    def states_read(self, state: State, memory: Memory) -> Tensor:
        return torch.minimum(self.states_needed(state["written"] - 1), self.states_available(state["written"], memory))

    def first_needed(self, state: State) -> int:
        return self.decoder.first_needed(state["decoder"]) if min(state["written"].tolist(), default=1) else 0

    def states_needed(self, written: Tensor) -> Tensor:
        """How many states must have been read before the next token."""
        return self.wait + (written.double() * self.ratio).floor().long()

    @staticmethod
    def states_available(written: Tensor, memory: Memory) -> Tensor:
        """How many states each row's source has so far."""
        return memory.offset + memory.lengths[memory.owner(len(written))]

    def inner_state(self, state: State, part: Memory) -> State:
        """The inner decoder's state, fresh at the first token: a stream may start before its first states arrive."""
        written = state["written"]
        return state["decoder"] if bool(written.any()) else self.decoder.start_rows(part, len(written))

    def visible_part(self, memory: Memory, written: Tensor) -> Memory:
        """The part of the memory that the next token may attend to."""
        return prefix_memory(memory, self.states_needed(written))
