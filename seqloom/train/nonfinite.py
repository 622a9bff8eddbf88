"""Updates that are not finite are skipped; too many in a row end the training with the name of what broke."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import torch
from torch import Tensor, nn

from seqloom.errors import SeqloomError
from seqloom.storage.history import Results
from seqloom.train import processes
from seqloom.train.batches import Batches
from seqloom.train.training import Training
from seqloom.types import Batch

PATIENCE = 5  # skipped updates in a row
Fault = tuple[int, Batch]  # a micro-batch whose loss was not finite, and its place in the update


def skip_update(
    training: Training, batches: Batches, fault: Fault | None, sums: Results, progress: float, numbers: Sequence[int]
) -> str:
    """A line for the display, which names what broke; after too many skipped updates in a row an error does.

    The fault is one of this process, the sums are over all processes, the numbers are those of the micro-batches.
    """
    state, plan = batches.state, batches.plan
    batches.carried = {}
    cause, rows = "", [row for number in numbers for row in plan.names(number)]
    if fault:
        place, batch = fault
        rows = list(batch.examples) or plan.names(numbers[place])

        def repeat() -> None:
            training.seed_random_numbers(state.step, place)
            training(batch, progress)

        cause = first_broken_module(training, repeat)
    elif not sums["count"]:
        cause = "a loss over no target at all"
    elif math.isfinite(sums["total"]):
        cause = first_broken_gradient(training)
    # A loss broke in some processes only, and the others learn of it here. Gradients are the same in all of them.
    ranks = range(processes.world_size())
    known = processes.sums([float(bool(cause) and rank == processes.rank()) for rank in ranks], training.device)
    source = next((rank for rank in ranks if known[rank]), 0)
    cause, rows = processes.broadcast([cause or "the loss", [int(row) for row in rows]], training.device, source)
    state.faults += 1
    if state.faults >= PATIENCE:
        shown = ", ".join(str(row) for row in rows[:8]) + (", ..." if len(rows) > 8 else "")
        raise SeqloomError(
            f"training stopped at step {state.step}: {PATIENCE} updates in a row were not finite, last {cause}; lower "
            f"learning_rate, lengthen warmup, lower clip, or look at the data (rows {shown} of the training set)"
        )
    return f"step {state.step} was skipped: {cause} was not finite"


def first_broken_module(module: nn.Module, run: Callable[[], object]) -> str:
    """Run once more and name the first part, in order of execution, whose output is broken."""
    for name, parameter in module.named_parameters():
        if not parameter.isfinite().all():
            return f'the weights "{name}"'
    found: list[str] = []

    def watch(name: str) -> Callable[[nn.Module, Any, Any], None]:
        def check(part: nn.Module, inputs: Any, output: Any) -> None:
            if not found and any(is_broken(tensor) for tensor in tensors_in(output)):
                found.append(f'the output of "{name}" ({type(part).__name__})')

        return check

    handles = [part.register_forward_hook(watch(name)) for name, part in module.named_modules() if name]
    try:
        with torch.no_grad():
            run()
    finally:
        for handle in handles:
            handle.remove()
    return found[0] if found else "the loss itself"


def first_broken_gradient(module: nn.Module) -> str:
    for name, parameter in module.named_parameters():
        if parameter.grad is not None and not parameter.grad.isfinite().all():
            return f'the gradient of "{name}"'
    return "the norm of the gradient"


def is_broken(tensor: Tensor) -> bool:
    """NaN or +inf. A score of -inf is no fault: it rules a token out."""
    return tensor.is_floating_point() and bool((tensor.isnan() | (tensor == float("inf"))).any())


def tensors_in(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for entry in value.values():
            yield from tensors_in(entry)
    elif isinstance(value, list | tuple):
        for entry in value:
            yield from tensors_in(entry)
    elif is_dataclass(value):
        for place in fields(value):
            yield from tensors_in(getattr(value, place.name))
