"""Are the gradients right? Every scalar of every parameter, by autograd and by central differences, in float64.

(L(w + e) - L(w - e)) / 2e with e = 1e-6, where L is the loss a target token. Rounding L leaves about 1e-9 of noise in
that quotient, so the error |a - n| / max(|a| + |n|, 1e-3) is judged against 1e-5: gradients below 1e-3 must agree to
1e-8, larger ones to five digits. No scalar may fail.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from seqloom.config.build import build_model, build_objective, build_task
from seqloom.config.check import check_recipe, made_of
from seqloom.config.discovery import find
from seqloom.config.recipes import difference
from seqloom.contracts import Objective
from seqloom.data.special_tokens import SPECIAL
from seqloom.errors import SeqloomError
from seqloom.nn.model import Model
from seqloom.types import Batch, Padded

STEP = 1e-6
FLOOR = 1e-3
TOLERANCE = 1e-5
WIDE, NARROW, NARROWEST = 8, 6, 4  # an integer above WIDE is a width, made NARROW or less
SOURCES, TARGETS = (5, 3, 1), (3, 4, 1)  # lengths of three examples: ragged, and not in the same order
WORDS = (3,)  # of a sentence, where sources are stories
STAND_INS: dict[str, Any] = {
    "symbols": SimpleNamespace(vocabulary=11, features=None),
    "vectors": SimpleNamespace(vocabulary=None, features=2),
}


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
    """A finding for every parameter of model and objective; all are right where all have passed."""
    return list(findings(model, objective, batch))


def findings(model: nn.Module, objective: Objective, batch: Batch) -> Iterator[Finding]:
    """The same, one by one. Drop-out is off, label smoothing is on, and what is drawn is drawn alike each time."""
    model, objective = copy.deepcopy(model).double().eval(), copy.deepcopy(objective).double().train()
    batch = in_double(batch)

    def loss() -> Tensor:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(1)
            found = objective(model, batch, 0.5)
        return found.total / found.count

    named = [*model.named_parameters(), *objective.named_parameters("objective")]
    learned = [(name, parameter) for name, parameter in named if parameter.requires_grad]
    parameters = [parameter for _, parameter in learned]
    gradients = torch.autograd.grad(loss(), parameters, allow_unused=True)
    for (name, parameter), gradient in zip(learned, gradients):
        # A parameter that autograd does not reach has no gradient: differences say whether that is true.
        yield judge(name, torch.zeros_like(parameter) if gradient is None else gradient, slopes(loss, parameter))


def in_double(batch: Batch) -> Batch:
    """Vectors as the model now takes them; tokens stay."""

    def converted(padded: Padded) -> Padded:
        values = padded.values.double() if padded.values.is_floating_point() else padded.values
        return Padded(values, padded.lengths)

    source = None if batch.source is None else converted(batch.source)
    return replace(batch, source=source, inputs=converted(batch.inputs), targets=converted(batch.targets))


@torch.no_grad()
def slopes(loss: Callable[[], Tensor], parameter: Tensor) -> Tensor:
    """The derivative of the loss by each scalar of the parameter, which is put back afterwards."""
    found = torch.empty_like(parameter)
    for place in product(*map(range, parameter.shape)):
        value = parameter[place].item()
        parameter[place] = value + STEP
        above = loss()
        parameter[place] = value - STEP
        found[place] = (above - loss()) / (2 * STEP)
        parameter[place] = value
    return found


def judge(name: str, by_autograd: Tensor, by_differences: Tensor) -> Finding:
    size = (by_autograd.abs() + by_differences.abs()).clamp(min=FLOOR)
    errors = ((by_autograd - by_differences).abs() / size).nan_to_num(nan=float("inf"))  # what is no number is wrong
    worst = int(errors.argmax())
    place = tuple(int(index) for index in torch.unravel_index(torch.tensor(worst), errors.shape))
    return Finding(
        name, errors.numel(), float(errors[place]), place, float(by_autograd[place]), float(by_differences[place])
    )


# -- a recipe made small


@dataclass(frozen=True)
class Small:
    """What is checked in place of a recipe's own model."""

    model: Model
    objective: Objective
    batch: Batch
    changes: list[str]  # "encoder.size = 4": in what it differs


def small(recipe: dict[str, Any], trust: bool = False) -> Small:
    """A completed recipe as a model with few weights: the same parts, layers and options, narrower."""
    told, kind = [], recipe["objective"]["type"]
    objective: Any = find("objectives", kind, "objective.type", trust)
    if objective.improves == "outputs":
        told = [f"objective = cross_entropy ({kind} follows estimates, which are no derivatives)"]
        recipe = {**recipe, "objective": {"type": "cross_entropy"}}
    check_recipe(recipe, trust)
    task = build_task(recipe, trust)
    source = None if task.source is None else STAND_INS[made_of(task.source)]
    target = STAND_INS[made_of(task.target)]
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        # In proportion some widths fit that do not when cut off; some decoders say one thing only.
        for most, lengths in product((NARROW, None), (TARGETS, (1,) * len(TARGETS))):
            torch.manual_seed(recipe["seed"])
            nested = task.source is not None and task.source.nested
            narrow, examples = narrowed(recipe, most), Examples(source, target, lengths, task.target.chooses, nested)
            batch = task.collate(examples, task.in_order(examples.lengths, tokens=1000)[0])
            try:
                model = build_model(narrow, source, target, trust)
                model(batch)  # some parts say only now that they do not fit
            except (SeqloomError, ValueError) as error:
                problem = error
                continue
            for parameter in model.parameters():  # zeros and ones would hide mistakes
                parameter.add_(torch.randn_like(parameter), alpha=0.1)
            changes = [f"{key} = {value_at(narrow, key)}" for key in difference(recipe, narrow)]
            objective = build_objective(narrow, task, model.decoder, trust, target)
            return Small(model, objective, objective.prepare(batch, np.random.default_rng(1)), told + changes)
    raise SeqloomError(f"the recipe cannot be made small enough to check ({problem}); set smaller sizes with --set")


class Examples:
    """Random examples, read as a corpus is. What targets choose, and whether sources are tables, is as a Codec says."""

    def __init__(self, source: Any, target: Any, lengths: Sequence[int], chooses: str = "", nested: bool = False):
        self.targets = [draw(target, length) for length in lengths]
        self.sources = [source and draw(source, length, WORDS if nested else ()) for length in SOURCES]
        for written, read in zip(self.targets, self.sources):
            if chooses == "places":
                written[:] = target.vocabulary + torch.randint(len(read), (len(written),)).numpy()
            elif chooses == "copies":  # the first word of each is one that no vocabulary has
                written[0], read[0] = target.vocabulary, source.vocabulary
        self.lengths = np.array([[length, len(target)] for length, target in zip(SOURCES, self.targets)])

    def __getitem__(self, row: int) -> tuple[np.ndarray | None, np.ndarray]:
        return self.sources[row], self.targets[row]

    def stream(self, begin: int, end: int) -> np.ndarray:
        return np.concat(self.targets)[begin:end]


def draw(codec: Any, length: int, words: tuple[int, ...] = ()) -> np.ndarray:
    """Tokens (T,), tables of them (T, W), or vectors (T, F)."""
    if codec.features is not None:
        return torch.randn(length, codec.features).numpy()
    return torch.randint(len(SPECIAL), codec.vocabulary, (length, *words)).numpy()


def narrowed(recipe: dict[str, Any], most: int | None) -> dict[str, Any]:
    """The recipe with its widths in proportion: the least becomes 4, the others even and at most `most`."""
    parts: dict[str, Any] = {name: recipe[name] for name in ("encoder", "decoder") if name in recipe}
    least = min(widths(parts), default=1)

    def narrow(name: str, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: narrow(key, entry) for key, entry in value.items()}
        if name == "heads" and isinstance(value, int):
            return min(value, 2)
        if not is_width(name, value):
            return value
        scaled = 2 * round(value * NARROWEST / least / 2)
        return scaled if most is None else min(scaled, most)

    return {**recipe, **{name: narrow(name, part) for name, part in parts.items()}}


def widths(table: dict[str, Any]) -> Iterator[int]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from widths(value)
        elif is_width(name, value):
            yield value


def is_width(name: str, value: Any) -> bool:
    """Whether a key of a part costs weights: of whatever name, a large integer does. Lengths of outputs do not."""
    return isinstance(value, int) and value > WIDE and not name.startswith("length_")


def value_at(table: Any, key: str) -> Any:
    for name in key.split("."):
        table = table[name]
    return table


# -- what is said of it


def report(checked: Small, say: Callable[[str], None]) -> bool:
    """Say a line for each parameter as soon as it is known, then the sum; true where all gradients are right."""
    named = [*checked.model.named_parameters(), *checked.objective.named_parameters("objective")]
    width = max(len(name) for name, _ in named)
    say(f"{'parameter':{width}}  scalars  worst error")
    found = []
    for each in findings(checked.model, checked.objective, checked.batch):
        say(f"{each.name:{width}}  {each.scalars:7,}  {each.error:11.1e}  {'pass' if each.passed else 'FAIL'}")
        found.append(each)
    say(conclusion(found))
    return all(each.passed for each in found)


def conclusion(found: list[Finding]) -> str:
    """The sum, and the worst offender if there is one."""
    counted = f"{len(found)} parameters, {sum(each.scalars for each in found):,} scalars"
    worst = max(found, key=lambda each: each.error)
    if worst.passed:
        return f"{counted}: all gradients are right (worst error {worst.error:.1e}, allowed {TOLERANCE:.0e})"
    wrong = sum(not each.passed for each in found)
    return f"{counted}: {wrong} of the parameters {'has' if wrong == 1 else 'have'} a wrong gradient, worst {worst}"
