"""What every check says when a claim does not hold: one line that tells the author of a part what is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn


class ContractError(AssertionError):
    """A part does not keep its contract."""


class NotAsked(Exception):  # noqa: N818  # no error: the part is excused
    """A claim that does not concern this part, and why."""


def require(holds: Any, otherwise: str) -> None:
    """The claim holds, or this is what is wrong."""
    if not bool(holds):
        raise ContractError(otherwise)


def require_same(found: Any, expected: Any, otherwise: str) -> None:
    """Equal to the last digits: tensors, or states of them."""
    try:
        torch.testing.assert_close(found, expected)
    except AssertionError as error:
        raise ContractError(f"{otherwise} ({difference(str(error))})") from None


def difference(message: str) -> str:
    """What torch.testing says of two values, in one line."""
    worst = re.search(r"Greatest absolute difference: (\S+)(?: at index (\([\d, ]*\)))?", message)
    if worst:
        where = f" at {worst[2].replace(',)', ')')}" if worst[2] else ""
        return f"they differ by up to {float(worst[1]):.2g}{where}"
    return next(line for line in message.splitlines() if line.strip()).rstrip("!")


def require_gradients(part: nn.Module) -> None:
    """After a backward pass: every parameter has a gradient that is not zero everywhere."""
    without = [name for name, value in part.named_parameters() if value.grad is None or not value.grad.any()]
    require(not without, f"no gradient reaches {', '.join(without)}: use it, or do not make it a parameter")
    broken = [name for name, value in part.named_parameters() if not value.grad.isfinite().all()]  # type: ignore[union-attr]
    require(not broken, f"the gradient of {', '.join(broken)} is not finite")


@contextmanager
def refused(kind: type[Exception], saying: str, otherwise: str) -> Iterator[None]:
    """The block raises this exception, with these words in its message."""
    try:
        yield
    except kind as error:
        require(saying in str(error), f'{otherwise}: the message has no "{saying}": {error}')
    else:
        raise ContractError(otherwise)
