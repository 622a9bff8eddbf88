"""ONNX Runtime: one graph for the encoder and one for a decoder step, under our own search.

The search is the same as for trained models, on numpy arrays, so every search setting works.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from seqloom.contracts import Constraint, Search, Stepper
from seqloom.contracts.search import refuse_large_attention
from seqloom.engines.engine import Engine, require_packages
from seqloom.types import Hypothesis, Memory, Output, Padded, State, flatten, hold, nest


class Onnx(Engine):
    """Both graphs, and what a search needs to know of the decoder."""

    def __init__(self, encoder: Any, decoder: OnnxDecoder):
        self.encoder, self.decoder = encoder, decoder

    @classmethod
    def load(cls, folder: Path, settings: dict[str, Any], threads: int) -> Onnx:
        require_packages("onnxruntime")
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 4  # it raises its errors; printed, they would show names as they are

        def session(name: str) -> Any:
            return onnxruntime.InferenceSession(
                str(folder / name), options, providers=["CPUExecutionProvider"], enable_fallback=0
            )

        return cls(session("encoder.onnx"), OnnxDecoder(session("step.onnx"), **settings))

    def compute(
        self,
        encoded: Sequence[Sequence[np.ndarray]],
        search: Search,
        prefix: np.ndarray | None,
        constraints: Sequence[Constraint],
        attention: bool,
        details: bool,
    ) -> list[list[Hypothesis]]:
        sources = [own for own, *_ in encoded]
        memory = self.encode(Padded.stack(sources))
        begun = None if prefix is None else Padded.stack([prefix] * len(sources))
        found = search(self.decoder, memory, begun, constraints)
        if attention:
            found = [self.decoder.with_attention(memory, entry, each) for entry, each in enumerate(found)]
        return found

    def encode(self, source: Padded) -> Memory:
        """Everything that a step reads of a source, and the first state."""
        names = [each.name for each in self.encoder.get_outputs()]
        found = dict(zip(names, self.encoder.run(None, {"values": source.values, "lengths": source.lengths})))
        nothing = np.zeros((len(source.lengths), source.values.shape[1], 0), dtype=np.float32)
        return Memory(nothing, source.lengths, final=nest(inner("state", found)), extra=nest(inner("memory", found)))


class OnnxDecoder(Stepper):
    """A step of the graph. The memory's `extra` is what it reads, `final` the state before the first step."""

    def __init__(self, session: Any, *, bos: int, eos: int, length_ratio: float, length_offset: int):
        self.session, self.bos, self.eos = session, bos, eos
        self.length_ratio, self.length_offset = length_ratio, length_offset
        self.inputs = {each.name for each in session.get_inputs()}
        self.outputs = [each.name.removesuffix("'") for each in session.get_outputs()]

    def start(self, memory: Memory) -> State:
        return memory.final

    def step(self, token: np.ndarray, state: State, memory: Memory) -> tuple[np.ndarray, State]:
        logits, after, _ = self.advance(token, state, memory)
        return logits, after

    def __call__(self, memory: Memory, inputs: Padded, state: State | None = None, attention: bool = False) -> Output:
        """All steps, one by one, inputs given."""
        rows, width = inputs.values.shape
        state = self.start_rows(memory, rows) if state is None else state
        scores: list[np.ndarray] = []
        looks: list[np.ndarray] = []
        for place in range(width):
            logits, after, look = self.advance(inputs.values[:, place], state, memory)
            state = hold(inputs.lengths <= place, after, state)
            scores.append(logits)
            looks += [look] if attention and look is not None else []
        maps = {"source": np.stack(looks, 1)[:, None, None]} if looks else {}  # (rows, 1, 1, U, T)
        return Output(np.stack(scores, 1), lambda scores: scores, state, maps)

    def advance(self, token: np.ndarray, state: State, memory: Memory) -> tuple[np.ndarray, State, np.ndarray | None]:
        """(rows,) -> logits (rows, V), the state, and the attention to the source (rows, T)."""
        sources = memory.rows
        given = {"token": token, **named("state", state)}
        feed = {name: value.reshape(sources, -1, *value.shape[1:]) for name, value in given.items()}  # (B, n, ...)
        feed |= {"lengths": memory.lengths, **named("memory", memory.extra)}
        results = self.session.run(None, {name: feed[name] for name in self.inputs})
        found = {name: value.reshape(-1, *value.shape[2:]) for name, value in zip(self.outputs, results)}
        return found["logits"], nest(inner("state", found)), found.get("attention")

    def with_attention(self, memory: Memory, entry: int, found: Sequence[Hypothesis]) -> list[Hypothesis]:
        """The hypotheses of one source with their attention, by teacher forcing."""
        if not found:
            return []
        width = int(memory.lengths[entry])
        refuse_large_attention(width, [len(one.tokens) for one in found])
        inputs = Padded.stack([np.array([self.bos, *one.tokens]) for one in found])
        maps = self(memory.select(np.array([entry])), inputs, attention=True).attention
        if "source" not in maps:
            return list(found)
        return [
            replace(one, attention=seen[0, 0, :length, :width].tolist())
            for one, seen, length in zip(found, maps["source"], inputs.lengths.tolist())
        ]


def named(group: str, state: State) -> dict[str, np.ndarray]:
    """The arrays of a state by the names they have in a graph."""
    return {f"{group}/{name}": value for name, value in flatten(state).items()}


def inner(group: str, found: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The inverse: the arrays of one group, by their names in it."""
    return {name.removeprefix(f"{group}/"): value for name, value in found.items() if name.startswith(f"{group}/")}
