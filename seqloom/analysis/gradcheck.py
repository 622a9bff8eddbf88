"""Are the gradients right? Every scalar of every parameter, by autograd and by central differences, in float64.

(L(w + e) - L(w - e)) / 2e with e = 1e-6, where L is the loss per target token. Rounding of L leaves about 1e-9 of noise
in that quotient, so the error |a - n| / max(|a| + |n|, 1e-3) may be at most 1e-5: gradients below 1e-3 must agree to
1e-8, larger ones to five digits. No scalar may fail.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product

import torch
from torch import Tensor, nn

from seqloom.analysis.small_model import SmallModel
from seqloom.contracts import Objective
from seqloom.types import Batch, Padded

STEP = 1e-6
FLOOR = 1e-3
TOLERANCE = 1e-5


@dataclass(frozen=True)
class Finding:
    """One parameter: the scalar in which its two gradients differ most."""

    name: str
    scalars: int
    error: float  # |a - n| / max(|a| + |n|, FLOOR)
    place: tuple[int, ...]
    by_autograd: float
    by_differences: float

    @property
    def passed(self) -> bool:
        return self.error <= TOLERANCE

    def __str__(self) -> str:
        where = f"{self.name}[{', '.join(map(str, self.place))}]" if self.place else self.name
        return f"{where}: {self.by_autograd:.6g} by autograd, {self.by_differences:.6g} by differences"


def gradcheck(model: nn.Module, objective: Objective, batch: Batch) -> list[Finding]:
    """One finding per parameter of model and objective; the gradients are right if all have passed."""
    return list(check_parameters(model, objective, batch))


def check_parameters(model: nn.Module, objective: Objective, batch: Batch) -> Iterator[Finding]:
    """The same, one by one. Drop-out is off, label smoothing is on, and random draws are the same each time."""
    model, objective = copy.deepcopy(model).double().eval(), copy.deepcopy(objective).double().train()
    batch = to_double(batch)

    def loss() -> Tensor:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(1)
            result = objective(model, batch, 0.5)
        return result.total / result.count

    named = [*model.named_parameters(), *objective.named_parameters("objective")]
    learned = [(name, parameter) for name, parameter in named if parameter.requires_grad]
    parameters = [parameter for _, parameter in learned]
    gradients = torch.autograd.grad(loss(), parameters, allow_unused=True)
    for (name, parameter), gradient in zip(learned, gradients):
        # A parameter that autograd does not reach has no gradient: differences show whether that is right.
        by_autograd = torch.zeros_like(parameter) if gradient is None else gradient
        yield largest_error(name, by_autograd, central_differences(loss, parameter))


def to_double(batch: Batch) -> Batch:
    """Vectors in float64; tokens stay as they are."""

    def convert(padded: Padded) -> Padded:
        values = padded.values.double() if padded.values.is_floating_point() else padded.values
        return Padded(values, padded.lengths)

    source = None if batch.source is None else convert(batch.source)
    return replace(batch, source=source, inputs=convert(batch.inputs), targets=convert(batch.targets))


@torch.no_grad()
def central_differences(loss: Callable[[], Tensor], parameter: Tensor) -> Tensor:
    """The derivative of the loss by each scalar of the parameter, which is restored afterwards."""
    derivatives = torch.empty_like(parameter)
    for place in product(*map(range, parameter.shape)):
        value = parameter[place].item()
        parameter[place] = value + STEP
        above = loss()
        parameter[place] = value - STEP
        derivatives[place] = (above - loss()) / (2 * STEP)
        parameter[place] = value
    return derivatives


def largest_error(name: str, by_autograd: Tensor, by_differences: Tensor) -> Finding:
    size = (by_autograd.abs() + by_differences.abs()).clamp(min=FLOOR)
    errors = ((by_autograd - by_differences).abs() / size).nan_to_num(nan=float("inf"))  # NaN is wrong
    worst = int(errors.argmax())
    place = tuple(int(index) for index in torch.unravel_index(torch.tensor(worst), errors.shape))
    return Finding(
        name, errors.numel(), float(errors[place]), place, float(by_autograd[place]), float(by_differences[place])
    )


def report(checked: SmallModel, write: Callable[[str], None]) -> bool:
    """Write one line per parameter as soon as it is checked, then a summary; true if all gradients are right."""
    named = [*checked.model.named_parameters(), *checked.objective.named_parameters("objective")]
    width = max(len(name) for name, _ in named)
    write(f"{'parameter':{width}}  scalars  worst error")
    findings = []
    for each in check_parameters(checked.model, checked.objective, checked.batch):
        write(f"{each.name:{width}}  {each.scalars:7,}  {each.error:11.1e}  {'pass' if each.passed else 'FAIL'}")
        findings.append(each)
    write(summary(findings))
    return all(each.passed for each in findings)


def summary(findings: list[Finding]) -> str:
    """How many scalars were checked, and the largest error."""
    counts = f"{len(findings)} parameters, {sum(each.scalars for each in findings):,} scalars"
    worst = max(findings, key=lambda each: each.error)
    if worst.passed:
        return f"{counts}: all gradients are right (worst error {worst.error:.1e}, allowed {TOLERANCE:.0e})"
    wrong = sum(not each.passed for each in findings)
    return f"{counts}: {wrong} of the parameters {'has' if wrong == 1 else 'have'} a wrong gradient, worst {worst}"
