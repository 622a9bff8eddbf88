"""How far back does a cell learn? The norm of dL/dh_t against the distance to the loss.

L = w . h_T with a random w of length 1, over T steps of random inputs. dL/dh_t is a product of T - t Jacobians, so its
norm falls (or grows) exponentially: a line on a logarithmic scale, whose slope is a property of the cell (Hochreiter
1991; Bengio, Simard & Frasconi 1994). Other states of a cell, such as the LSTM's c, have lines of their own.
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
from seqloom.analysis.small_model import stand_in
from seqloom.analysis.table import align_columns
from seqloom.config.build import build_model, build_task
from seqloom.config.check import check_recipe
from seqloom.config.complete import complete
from seqloom.config.recipes import Overrides, override, read_recipe
from seqloom.contracts import Cell
from seqloom.data.special_tokens import SPECIAL
from seqloom.errors import SeqloomError
from seqloom.nn.model import Model
from seqloom.predictor import Predictor
from seqloom.types import over_tensors

DRAWS = 32  # input sequences, over which logarithms are averaged
LAGS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)  # in the table


@dataclass(frozen=True)
class GradientFlow:
    """What is left of a gradient: norms[entry][lag] is log10 |dL/d(entry of the state)|, lag steps before the loss."""

    name: str
    about: str  # which cell, random or trained
    norms: dict[str, list[float]]  # of "hidden" and the other states of the cell; -inf where nothing is left

    @property
    def slope(self) -> float:
        """Of a least-squares line through the norms of the hidden state, from one step back: log10 per step."""
        return slope(self.norms["hidden"])


def gradients(
    names: Sequence[str | Path],
    settings: Overrides = (),
    *,
    length: int = 100,
    draws: int = DRAWS,
    trust: bool = False,
) -> list[GradientFlow]:
    """The gradient flow in the cell of each run or recipe; settings ({"encoder.cell": "gru"}) change the recipes."""
    if settings and all(map(is_run, names)):
        raise SeqloomError(f"{names[0]} is a run, trained as it is: --set changes a recipe, so name one")
    return [measure_flow(name, settings, length, draws, trust) for name in names]


def measure_flow(name: str | Path, settings: Overrides, length: int, draws: int, trust: bool) -> GradientFlow:
    """In the cell of a run as trained, or of a recipe before training: the encoder's lowest, else the decoder's."""
    if length < 2:
        raise SeqloomError(f"length = {length}: expected 2 steps or more, for a slope")
    if is_run(name):
        run = Predictor.load(name, "cpu", trust)
        model, recipe, label, trained = run.model, run.recipe, Path(name).resolve().name, "trained"
    else:
        recipe = complete(override(read_recipe(name, trust), settings), str(name), trust)
        model, label, trained = untrained_model(recipe, trust), Path(name).stem, "random"
    side, cell, embedding = lowest_cell(model, str(name))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        inputs = random_inputs(cell, embedding, draws, length)
        direction = nn.functional.normalize(torch.randn(cell.size, dtype=torch.float64), dim=0)
    norms = {entry: values.tolist() for entry, values in gradient_norms(cell, inputs, direction).items()}
    return GradientFlow(label, f"{trained} {describe(recipe[side].get('cell'), cell)}", norms)


def gradient_norms(cell: Cell, inputs: Tensor, direction: Tensor) -> dict[str, Tensor]:
    """log10 |dL/dstate| for lags 0 to T, mean over rows; L = direction . h_T.  (rows, T, I), (size,) -> (T + 1,)"""
    cell = copy.deepcopy(cell).double().eval().requires_grad_(False)
    start = over_tensors(Tensor.clone, cell.start(inputs.shape[0]))
    carried = [name for name, value in start.items() if isinstance(value, Tensor) and value.is_floating_point()]
    for name in carried:
        start[name].requires_grad_()
    states = [start]
    for projected in cell.project(inputs.double()).unbind(1):
        states.append(cell(projected, states[-1])[1])
    loss = (states[-1]["hidden"] @ direction.double()).sum()
    result = {}
    for name in carried:
        gradients = torch.autograd.grad(loss, [state[name] for state in states], retain_graph=True, allow_unused=True)
        norms = [torch.zeros(inputs.shape[0]) if each is None else each.norm(dim=-1) for each in gradients]
        result[name] = torch.stack([norm.double() for norm in norms]).log10().mean(1).flip(0)
    return result


def slope(norms: Sequence[float]) -> float:
    """Of a least-squares line through log10 norms from lag 1 on, without those that left the range of floats."""
    lags = [lag for lag, norm in enumerate(norms) if lag and abs(norm) < inf]
    return float(np.polyfit(lags, [norms[lag] for lag in lags], 1)[0]) if len(lags) > 1 else -inf


# -- which cell, and its inputs


def is_run(name: str | Path) -> bool:
    """A folder is a run; anything else names a recipe."""
    return Path(name).is_dir()


def untrained_model(recipe: dict[str, Any], trust: bool) -> Model:
    """The model of a completed recipe as training would start with it, except for the vocabulary."""
    check_recipe(recipe, trust)
    task = build_task(recipe, trust)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe["seed"])
        return build_model(recipe, stand_in(task.source), stand_in(task.target), trust)


def lowest_cell(model: Model, name: str) -> tuple[str, Cell, Any]:
    """The cell nearest to the input: its side, the cell, and the embedding that it reads, if nothing else."""
    for side in ("encoder", "decoder"):
        part = getattr(model, side)
        cells = [] if part is None else [each for each in part.modules() if isinstance(each, Cell)]
        embedding = getattr(part, "embedding", None)
        width = getattr(embedding, "embedding_dim", getattr(embedding, "out_features", None))
        fitting = [cell for cell in cells if cell.input_size == width]
        if fitting:
            return side, fitting[0], embedding
        if cells:  # reads more than embeddings
            return side, cells[0], None
    raise SeqloomError(f"{name} has no recurrent cell, so no gradient goes through time; choose a recurrent one")


def random_inputs(cell: Cell, embedding: Any, rows: int, length: int) -> Tensor:
    """Random tokens or vectors, embedded as the model does; without an embedding plain noise.  (rows, T, I)"""
    if isinstance(embedding, nn.Embedding):
        count = embedding.num_embeddings
        return embedding(torch.randint(min(len(SPECIAL), count - 1), count, (rows, length))).detach()
    if isinstance(embedding, nn.Linear):
        return embedding(torch.randn(rows, length, embedding.in_features)).detach()
    return torch.randn(rows, length, cell.input_size)


def describe(table: dict[str, Any] | None, cell: Cell) -> str:
    """The cell as in the recipe, with its size: "elman of 128, activation sigmoid"."""
    table = table or {"type": type(cell).__name__.lower()}
    options = [f", {name} {value}" for name, value in table.items() if name != "type"]
    return f"{table['type']} of {cell.size}{''.join(options)}"


# -- the table and the figure


def flow_table(flows: Sequence[GradientFlow]) -> str:
    """The norms at some lags, and the slope."""
    length = len(flows[0].norms["hidden"]) - 1
    lags = [lag for lag in LAGS if lag <= length]
    rows = [["steps back", *map(str, lags), "slope"]]
    for each in flows:
        for entry, norms in each.norms.items():
            name = f"{each.name}: {each.about}" if entry == "hidden" else f"  {entry} state"
            rows.append([name, *(f"{10 ** norms[lag]:.1e}" for lag in lags), f"{slope(norms):.4f}"])
    ending = "Slope: the change of log10 |dL/dh| per step back; at -0.1 a gradient is ten times smaller ten steps back."
    return "\n".join([*align_columns(rows), ending])


def flow_figure(flows: Sequence[GradientFlow]) -> Any:
    """One line per hidden state. The LSTM's c has almost the slope of its h, so it is only in the table."""
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
