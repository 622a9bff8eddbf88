"""Write a model as two graphs for ONNX Runtime: one reads a source, one takes a step.

    encoder.onnx   values (B, T, ...), lengths (B,)  ->  memory/* (B, ...), state/* (B, ...)
    step.onnx      token (B, n), lengths (B,), memory/*, state/* (B, n, ...)
                   ->  logits (B, n, V), state/*' (B, n, ...), attention (B, n, T) if it attends

n rows read each source. A cell's loop over time becomes a loop of the graph, so that sources may have any length.
"""

from __future__ import annotations

import copy
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim

from seqloom.contracts import Cell, Decoder, Encoder, Head
from seqloom.engines.engine import require_packages
from seqloom.errors import SeqloomError
from seqloom.nn.attention.multihead import MultiHead
from seqloom.nn.combine.ensemble import Ensemble
from seqloom.nn.encoders.hierarchical import Hierarchical
from seqloom.nn.layers.experts import Experts
from seqloom.nn.model import Model
from seqloom.nn.ops.halting import Halting
from seqloom.types import Memory, Padded, State, flatten, over_tensors

SOURCES, TIME, ROWS = 3, 5, 2  # sizes of the traced example: a size of 1 would be taken for a constant


def export(model: Model, folder: Path, int8: bool) -> dict[str, Any]:
    """Write both graphs; returns the settings with which to load them."""
    require_packages("onnx", "onnxscript", "onnxruntime")
    refuse(model, int8)
    model = copy.deepcopy(model).float().cpu().eval().requires_grad_(False)
    with torch.enable_grad(), quiet():  # without gradients, layers would use cached copies of weights
        example = TracedExample(model)
        for module in model.modules():
            if isinstance(module, Cell):
                module.run = partial(run_in_graph, module)  # type: ignore[method-assign]
        try:
            read = write_step(model.decoder, example, folder / "step.onnx")
            write_encoder(model, example, read, folder / "encoder.onnx")
        except (RuntimeError, TypeError, ValueError) as error:  # of torch's exporter
            reason = type(error).__name__
            raise SeqloomError(f"torch finds no ONNX graph for this model ({reason}): use the run itself") from error
    return {"bos": model.decoder.bos}


def refuse(model: Model, int8: bool) -> None:
    """Refuse models without a step whose state has a fixed size."""
    if int8:
        raise SeqloomError("--int8 goes with --to ctranslate2: leave it out")
    if isinstance(model.decoder, (Head, Ensemble)) or model.encoder is None:
        raise SeqloomError(
            "--to onnx supports one model that reads a source and writes token by token: use the run itself"
        )
    if model.decoder.endless:
        raise SeqloomError("--to onnx does not support pixels and samples: use the run itself")
    if any(isinstance(module, Encoder) and module.reads != "sequences" for module in model.modules()):
        raise SeqloomError("--to onnx does not support pictures and films: use the run itself")
    if any(isinstance(module, MultiHead) for module in model.modules()) and not model.decoder.grows:
        raise SeqloomError("--to onnx does not support multi-head attention: use the run itself")
    if any(isinstance(module, Hierarchical) for module in model.modules()):
        raise SeqloomError("--to onnx does not support hierarchical encoders: use the run itself")
    if any(isinstance(module, Experts) for module in model.modules()):
        raise SeqloomError("--to onnx does not support experts: use the run itself")
    if any(isinstance(module, Halting) for module in model.modules()):
        raise SeqloomError("--to onnx does not support adaptive computation time: use the run itself")
    if model.decoder.grows:
        raise SeqloomError("--to onnx does not support decoders with a KV cache: use --to ctranslate2")


# -- the graphs


class Reading(nn.Module):
    """From a source to what a step reads, and to the state before the first step."""

    def __init__(self, model: Model, names: Sequence[str]):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, values: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
        memory = self.model.encode(Padded(values, lengths))
        return (*(leaves(memory)[name] for name in self.names), *flatten(self.model.decoder.start(memory)).values())


class Stepping(nn.Module):
    """One step of n rows per source. Memory and state are lists, in the order of the traced example."""

    def __init__(self, decoder: Decoder, memory: Memory, state: State):
        super().__init__()
        self.decoder, self.memory, self.state = decoder, memory, state

    def forward(self, token: Tensor, lengths: Tensor, memory: list[Tensor], state: list[Tensor]) -> tuple[Tensor, ...]:
        shape, rows = token.shape, iter([each.flatten(0, 1) for each in state])
        before = over_tensors(lambda _: next(rows), self.state)
        token = token.flatten()  # (rows,)
        output = self.decoder(
            refilled(self.memory, lengths, memory),
            Padded(token[:, None], torch.ones_like(token)),
            before,
            attention=True,
        )
        after = flatten(output.state)
        found = [output.scores[:, 0], *(after[name] for name in flatten(self.state))]  # a step may order them otherwise
        if "source" in output.attention:
            found.append(output.attention["source"][:, :, :, 0].mean((1, 2)))  # (rows, T)
        return tuple(each.unflatten(0, shape) for each in found)


def leaves(memory: Memory) -> dict[str, Tensor]:
    """The arrays of a memory, except its lengths."""
    return flatten({"states": memory.states, "final": memory.final, "extra": memory.extra})


def refilled(memory: Memory, lengths: Tensor, values: Sequence[Tensor]) -> Memory:
    """A memory of the same structure with other values."""
    left = iter(values)
    return replace(
        memory,
        states=next(left),
        lengths=lengths,
        final=over_tensors(lambda _: next(left), memory.final),
        extra=over_tensors(lambda _: next(left), memory.extra),
    )


def run_in_graph(cell: Cell, inputs: Padded, state: State) -> tuple[Tensor, State]:
    """`Cell.run` as one loop of the graph. A row keeps its state after its end."""
    from torch._higher_order_ops.scan import scan

    projected = cell.project(inputs.values)  # (rows, T, G)
    if projected.shape[1] == 1:  # a step
        output, state = cell(projected[:, 0], state)
        return output[:, None], state

    def step(before: State, now: tuple[Tensor, Tensor]) -> tuple[State, Tensor]:
        output, after = cell(now[0], before)
        kept = {name: torch.where(now[1][:, None], after[name], before[name]) for name in after}
        return kept, output.clone()

    over_time = (projected.transpose(0, 1).contiguous(), inputs.mask.t().contiguous())
    last, outputs = scan(step, over_tensors(Tensor.clone, state), over_time)
    return outputs.transpose(0, 1), last


# -- writing them


class TracedExample:
    """What is traced: sources, their memory, the state before a step, and which of their axes are dynamic."""

    def __init__(self, model: Model):
        self.values, self.lengths = source(model, TIME)
        self.memory, other = (model.encode(Padded(*source(model, time))) for time in (TIME, TIME + 1))
        self.state = model.decoder.start(self.memory)
        self.read, self.held = leaves(self.memory), flatten(self.state)
        self.token = torch.full((SOURCES, ROWS), model.decoder.bos)
        self.rows = [value[:, None].expand(-1, ROWS, *value.shape[1:]).contiguous() for value in self.held.values()]
        one = Padded(self.token[:, :1], torch.ones_like(self.token[:, 0]))
        self.looks = "source" in model.decoder(self.memory, one, attention=True).attention
        self.sources, self.time, self.some = Dim("sources"), Dim("time"), Dim("rows")
        self.axes = [
            {0: self.sources, **self.over_time(value, longer)}
            for value, longer in zip(self.read.values(), leaves(other).values())
        ]
        self.state_axes = [  # of n rows per source
            {0: self.sources, 1: self.some, **{axis + 1: size for axis, size in self.over_time(value, longer).items()}}
            for value, longer in zip(self.held.values(), flatten(model.decoder.start(other)).values())
        ]

    def over_time(self, value: Tensor, longer: Tensor) -> dict[int, Any]:
        """The axes in which it differs from that of longer sources."""
        return {axis: self.time for axis, size in enumerate(value.shape) if size != longer.shape[axis]}


def source(model: Model, time: int) -> tuple[Tensor, Tensor]:
    """An example source: tokens or vectors."""
    table: Any = getattr(model.encoder, "embedding", None)
    vectors = isinstance(table, nn.Linear)
    values = torch.randn(SOURCES, time, table.in_features) if vectors else torch.zeros(SOURCES, time, dtype=torch.long)
    return values, torch.tensor([time, time - 2, time - 1])


def write_step(decoder: Decoder, example: TracedExample, path: Path) -> list[str]:
    """Write the graph of a step; returns what it reads of a memory, which may be less than the encoder left there."""
    state = [f"state/{name}" for name in example.held]
    program = traced(
        Stepping(decoder, example.memory, example.state),
        (example.token, example.lengths, list(example.read.values()), example.rows),
        ({0: example.sources, 1: example.some}, {0: example.sources}, example.axes, example.state_axes),
        ["token", "lengths", *(f"memory/{name}" for name in example.read), *state],
        ["logits", *state, *(["attention"] if example.looks else [])],
    )
    inputs = program.model.graph.inputs
    for unread in [each for each in inputs if not each.uses()]:
        inputs.remove(unread)
    program.save(path, external_data=True)  # weights in a file beside it, which is memory-mapped
    return [name for name in example.read if f"memory/{name}" in {each.name for each in inputs}]


def write_encoder(model: Model, example: TracedExample, read: list[str], path: Path) -> None:
    program = traced(
        Reading(model, read),
        (example.values, example.lengths),
        ({0: example.sources, 1: example.time}, {0: example.sources}),
        ["values", "lengths"],
        [*(f"memory/{name}" for name in read), *(f"state/{name}" for name in example.held)],
    )
    program.save(path, external_data=True)  # weights in a file beside it, which is memory-mapped


def traced(module: nn.Module, arguments: Any, shapes: Any, inputs: list[str], outputs: list[str]) -> Any:
    """The ONNX program of a module. Inputs of the graph are named apart from its outputs."""
    return torch.onnx.export(
        module.eval(),
        arguments,
        dynamic_shapes=shapes,
        input_names=inputs,
        output_names=[f"{name}'" if name in inputs else name for name in outputs],
        dynamo=True,
        verbose=False,
    )


@contextmanager
def quiet() -> Iterator[None]:
    """Silences torch's exporter, and lets it look into `nn.LSTM` for its weights."""
    import torch._dynamo

    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), torch._dynamo.config.patch(allow_rnn=True):
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
