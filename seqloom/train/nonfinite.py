"""Where a loss or a gradient stopped being finite."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import torch
from torch import Tensor, nn

from seqloom.errors import SeqloomError

PATIENCE = 5  # faulty updates in a row


def is_broken(tensor: Tensor) -> bool:
    """Not a number, or +inf. A score of -inf is no fault: that is how a token is ruled out."""
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


def first_broken_module(module: nn.Module, run: Callable[[], object]) -> str:
    """Run once more and name the first part, in order of execution, whose output is broken."""
    for name, parameter in module.named_parameters():
        if not parameter.isfinite().all():
            return f'the weights "{name}"'
    found: list[str] = []

    def watch(name: str) -> Callable[[nn.Module, Any, Any], None]:
        def look(part: nn.Module, inputs: Any, output: Any) -> None:
            if not found and any(is_broken(tensor) for tensor in tensors_in(output)):
                found.append(f'the output of "{name}" ({type(part).__name__})')

        return look

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


def give_up(where: str, step: int, rows: list[int]) -> SeqloomError:
    """The error after too many faults in a row."""
    shown = ", ".join(str(row) for row in rows[:8]) + (", ..." if len(rows) > 8 else "")
    return SeqloomError(
        f"training stopped at step {step}: {PATIENCE} updates in a row were not finite, last {where}; lower "
        f"learning_rate, lengthen warmup, lower clip, or look at the data (rows {shown} of the training set)"
    )
