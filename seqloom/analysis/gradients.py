"""How far back does a cell learn? The norm of dL/dh_t against the distance to the loss.

L = w . h_T with a random w of length 1, over T steps of random inputs. A product of T - t Jacobians stands between h_t
and L, so the norm falls (or grows) exponentially: a line on a logarithmic scale, whose slope is the cell's own
(Hochreiter 1991; Bengio, Simard & Frasconi 1994). What else a cell carries, such as the LSTM's c, has its own line.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from seqloom.analysis import plot
from seqloom.analysis.gradcheck import STAND_INS
from seqloom.analysis.table import aligned
from seqloom.config.build import build_model, build_task
from seqloom.config.check import check_recipe, made_of
from seqloom.config.complete import complete
from seqloom.config.recipes import override, read_recipe
from seqloom.contracts import Cell
from seqloom.data.special_tokens import SPECIAL
from seqloom.errors import SeqloomError
from seqloom.explain.terminal import visible
from seqloom.nn.model import Model
from seqloom.predictor import Predictor
from seqloom.types import over_tensors

DRAWS = 32  # input sequences, whose logarithms are averaged
LAGS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)  # those that are printed


@dataclass(frozen=True)
class Flow:
    """How much of a gradient is left: norms[entry][lag] is log10 |dL/d(that entry of the state)|, lag steps back."""

    name: str
    about: str  # which cell, random or trained
    norms: dict[str, list[float]]  # "hidden", and what else the cell carries; -inf where nothing is left

    @property
    def slope(self) -> float:
        """Of the line through the hidden state's norms, from one step back: log10 a step, by least squares."""
        return slope(self.norms["hidden"])


def gradients(
    names: Sequence[str | Path],
    settings: Sequence[str] = (),
    *,
    length: int = 100,
    draws: int = DRAWS,
    trust: bool = False,
) -> list[Flow]:
    """The flows of runs and recipes; settings ("encoder.cell.type=gru") change the recipes."""
    if settings and all(map(is_run, names)):
        raise SeqloomError(f"{names[0]} is a run, trained as it is: --set changes a recipe, so name one")
    return [measured(name, settings, length, draws, trust) for name in names]


def measured(name: str | Path, settings: Sequence[str], length: int, draws: int, trust: bool) -> Flow:
    """The flow of a run's trained cell, or of a recipe's before training: the encoder's lowest, else the decoder's."""
    if length < 2:
        raise SeqloomError(f"length = {length}: expected 2 steps or more, for a slope")
    if is_run(name):
        run = Predictor.load(name, "cpu", trust)
        model, recipe, label, trained = run.model, run.recipe, Path(name).resolve().name, "trained"
    else:
        recipe = complete(override(read_recipe(name, trust), list(settings)), str(name), trust)
        model, label, trained = untrained(recipe, trust), Path(name).stem, "random"
    side, cell, reading = lowest_cell(model, str(name))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        inputs = draw(cell, reading, draws, length)
        direction = nn.functional.normalize(torch.randn(cell.size, dtype=torch.float64), dim=0)
    norms = {entry: values.tolist() for entry, values in flow(cell, inputs, direction).items()}
    return Flow(label, f"{trained} {described(recipe[side].get('cell'), cell)}", norms)


def flow(cell: Cell, inputs: Tensor, direction: Tensor) -> dict[str, Tensor]:
    """log10 |dL/dstate| for lags 0..T, mean over rows; L = direction . h_T.  (rows, T, I), (size,) -> (T + 1,)"""
    cell = copy.deepcopy(cell).double().eval().requires_grad_(False)
    start = over_tensors(Tensor.clone, cell.start(inputs.shape[0]))
    carried = [name for name, value in start.items() if isinstance(value, Tensor) and value.is_floating_point()]
    for name in carried:
        start[name].requires_grad_()
    states = [start]
    for projected in cell.project(inputs.double()).unbind(1):
        states.append(cell(projected, states[-1])[1])
    loss = (states[-1]["hidden"] @ direction.double()).sum()
    found = {}
    for name in carried:
        whole = torch.autograd.grad(loss, [state[name] for state in states], retain_graph=True, allow_unused=True)
        norms = [torch.zeros(inputs.shape[0]) if part is None else part.norm(dim=-1) for part in whole]
        found[name] = torch.stack([norm.double() for norm in norms]).log10().mean(1).flip(0)
    return found


def slope(norms: Sequence[float]) -> float:
    """Of the line through log10 norms from lag 1 on; of what has left the range of numbers nothing is known."""
    lags = [lag for lag, norm in enumerate(norms) if lag and abs(norm) < inf]
    return float(np.polyfit(lags, [norms[lag] for lag in lags], 1)[0]) if len(lags) > 1 else -inf


# -- which cell, and what it reads


def is_run(name: str | Path) -> bool:
    """A folder is a run; all else names a recipe."""
    return Path(name).is_dir()


def untrained(recipe: dict[str, Any], trust: bool) -> Model:
    """The model of a completed recipe as training would begin with it, but for the vocabulary."""
    check_recipe(recipe, trust)
    task = build_task(recipe, trust)
    source = None if task.source is None else STAND_INS[made_of(task.source)]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe["seed"])
        return build_model(recipe, source, STAND_INS[made_of(task.target)], trust)


def lowest_cell(model: Model, name: str) -> tuple[str, Cell, Any]:
    """The cell nearest to the input: which side it is on, itself, and what makes its inputs."""
    for side in ("encoder", "decoder"):
        part = getattr(model, side)
        cells = [] if part is None else [each for each in part.modules() if isinstance(each, Cell)]
        reading = getattr(part, "embedding", None)
        width = getattr(reading, "embedding_dim", getattr(reading, "out_features", None))
        fitting = [cell for cell in cells if cell.input_size == width]
        if fitting:
            return side, fitting[0], reading
        if cells:  # reads more than its embeddings
            return side, cells[0], None
    raise SeqloomError(f"{name} has no recurrent cell, so that no gradient goes through time; choose a recurrent one")


def draw(cell: Cell, reading: Any, rows: int, length: int) -> Tensor:
    """What the cell reads: random tokens or vectors, embedded as the model does; else plain noise.  (rows, T, I)"""
    if isinstance(reading, nn.Embedding):
        symbols = torch.randint(min(len(SPECIAL), reading.num_embeddings - 1), reading.num_embeddings, (rows, length))
        return reading(symbols).detach()
    if isinstance(reading, nn.Linear):
        return reading(torch.randn(rows, length, reading.in_features)).detach()
    return torch.randn(rows, length, cell.input_size)


def described(table: dict[str, Any] | None, cell: Cell) -> str:
    """The cell as the recipe writes it, and how wide it is: "elman of 128, activation sigmoid"."""
    table = table or {"type": type(cell).__name__.lower()}
    options = [f", {name} {value}" for name, value in table.items() if name != "type"]
    return f"{table['type']} of {cell.size}{''.join(options)}"


# -- what is shown


def table(flows: Sequence[Flow]) -> str:
    """The norms at some lags, and the slope."""
    length = len(flows[0].norms["hidden"]) - 1
    lags = [lag for lag in LAGS if lag <= length]
    rows = [["steps back", *map(str, lags), "slope"]]
    for each in flows:
        for entry, norms in each.norms.items():
            name = f"{visible(each.name)}: {each.about}" if entry == "hidden" else f"  its {entry}"
            rows.append([name, *(f"{10 ** norms[lag]:.1e}" for lag in lags), f"{slope(norms):.4f}"])
    ending = "The slope is that of log10 |dL/dh| a step: at -0.1 a gradient is ten times less ten steps back."
    return "\n".join([*aligned(rows), ending])


def picture(flows: Sequence[Flow]) -> Any:
    """A line for each. The LSTM's c has almost the slope of its h, so that the table says enough of it."""
    figure, (panel,) = plot.figure()
    handles = []
    for number, each in enumerate(flows):
        norms = each.norms["hidden"]
        lags = [lag for lag, norm in enumerate(norms) if abs(norm) < inf]
        handles += panel.semilogy(lags, [10 ** norms[lag] for lag in lags], **plot.line(number), linewidth=1.8)
    panel.set_xlabel("steps back from the loss")
    panel.set_ylabel("norm of dL/dh")
    plot.legend(figure, handles, [f"{each.name}: {each.about}; slope {each.slope:.3f}" for each in flows])
    return figure
