"""The cost of a cell in training, relative to torch's LSTM of the same size on the same batch without padding.

    OMP_NUM_THREADS=1 python -m bench.cells [--before FOLDER] [--out FILE]

Forward and backward over a whole batch in fp32, once full and once ragged (lengths evenly from T/2 to T). All take
turns, so that other load on the machine affects all, and times are processor times. A ratio is that of two medians.
With --before the cells of an earlier checkout of Seqloom take turns too; their figures are in brackets.

The second part runs one cell, an LSTM without a forget gate, in several ways.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from bench import measuring
from seqloom.config.discovery import parts
from seqloom.contracts import Cell
from seqloom.nn.cells.lstm import LSTM
from seqloom.types import Padded, State, hold

SHAPES = {(32, 20, 64): 41, (64, 50, 128): 21, (128, 100, 256): 9}  # rows, T, size: repeats
WARMING = 2
CELLS: dict[str, tuple[str, dict[str, Any]]] = {  # part and settings
    "LSTM": ("lstm", {}),
    "LSTM without forget": ("lstm", {"without": "forget"}),
    "LSTM without input": ("lstm", {"without": "input"}),
    "LSTM without output": ("lstm", {"without": "output"}),
    "GRU": ("gru", {}),
    "GRU, reset before": ("gru", {"reset": "before"}),
    "Elman": ("elman", {}),
    "Elman, logistic": ("elman", {"activation": "sigmoid"}),
    "MUT1": ("mut", {"variant": 1}),
    "MUT2": ("mut", {"variant": 2}),
    "MUT3": ("mut", {"variant": 3}),
}
Run = Callable[[Padded, State], tuple[Tensor, State]]
Figures = dict[str, dict[str, float]]  # by name: median, lowest and highest milliseconds, ratio


# -- what is measured


def earlier_parts(folder: Path) -> dict[str, type]:
    """The cells of another checkout, in the same process as our own."""

    def ours() -> dict[str, Any]:
        return {name: sys.modules[name] for name in list(sys.modules) if name.split(".")[0] == "seqloom"}

    kept = ours()
    for name in kept:
        del sys.modules[name]
    sys.path.insert(0, str(folder))
    try:
        found: dict[str, type] = importlib.import_module("seqloom.config.discovery").parts("cells")
    finally:
        sys.path.remove(str(folder))
        for name in ours():
            del sys.modules[name]
        sys.modules.update(kept)
    return found


def run_torch(kernel: nn.LSTM, inputs: Padded, state: State) -> tuple[Tensor, State]:
    """torch itself; a ragged batch is packed."""
    if int(inputs.lengths.min()) == inputs.values.shape[1]:
        outputs, (hidden, _) = kernel(inputs.values)
        return outputs, {"hidden": hidden[0]}
    packed = pack_padded_sequence(inputs.values, inputs.lengths, batch_first=True, enforce_sorted=False)
    outputs, (hidden, _) = kernel(packed)
    return pad_packed_sequence(outputs, batch_first=True)[0], {"hidden": hidden[0]}


def run_held(cell: Cell, inputs: Padded, state: State) -> tuple[Tensor, State]:
    """Rows that have ended keep their state at every step."""
    outputs = []
    for step, projected in enumerate(cell.project(inputs.values).unbind(1)):
        output, new = cell(projected, state)
        state = hold(inputs.lengths <= step, new, state)
        outputs.append(output)
    return torch.stack(outputs, dim=1), state


def run_steps(step: Any, cell: Cell, inputs: Padded, state: State) -> tuple[Tensor, State]:
    """A compiled step on a full batch."""
    outputs = []
    for projected in cell.project(inputs.values).unbind(1):
        output, state = step(projected, state)
        outputs.append(output)
    return torch.stack(outputs, dim=1), state


def loop(projected: Tensor, hidden: Tensor, memory: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """An LSTM without a forget gate on a full batch, in operations that compilers support."""
    outputs: list[Tensor] = []
    for part in projected.unbind(1):
        enter, candidate, leave = torch.addmm(part, hidden, weight.t()).chunk(3, dim=-1)
        memory = memory + enter.sigmoid() * candidate.tanh()
        hidden = leave.sigmoid() * memory.tanh()
        outputs.append(hidden)
    return torch.stack(outputs, dim=1), hidden


def run_loop(compiled: Any, cell: LSTM, inputs: Padded, state: State) -> tuple[Tensor, State]:
    weight = cell.kernel.weight_hh_l0
    outputs, hidden = compiled(cell.project(inputs.values), state["hidden"], state["cell"], weight)
    return outputs, {"hidden": hidden}


# -- measuring


def milliseconds(run: Run, inputs: Padded, state: State) -> float:
    """Processor time of one forward and backward pass."""
    values = inputs.values.detach().requires_grad_()
    begin = time.process_time()
    outputs, end = run(Padded(values, inputs.lengths), state)
    (outputs.sum() + end["hidden"].sum()).backward()
    return 1000 * (time.process_time() - begin)


def measure(runs: dict[str, tuple[Run, Padded, State]], repeats: int) -> Figures:
    """Ratios are relative to the first one."""
    found: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(WARMING + repeats):
        for name, arguments in runs.items():
            spent = milliseconds(*arguments)
            if turn >= WARMING:
                found[name].append(spent)
    medians = {name: statistics.median(each) for name, each in found.items()}
    unit = next(iter(medians.values()))
    return {
        name: {**measuring.summary(each), "ratio": measuring.significant(medians[name] / unit, 3)}
        for name, each in found.items()
    }


def compare_cells(given: dict[str, dict[str, type]], rows: int, length: int, size: int, repeats: int) -> Figures:
    """{"MUT1, full": figures, ..., "MUT1, ragged, before": figures}, for {"": our parts, ", before": others}."""
    values = torch.randn(rows, length, size)
    lengths = torch.linspace(length // 2, length, rows).round().long()[torch.randperm(rows)]
    batches = {"full": Padded(values, torch.full((rows,), length)), "ragged": Padded(values, lengths)}
    unit = partial(run_torch, nn.LSTM(size, size, batch_first=True))
    runs: dict[str, tuple[Run, Padded, State]] = {
        f"nn.LSTM, {kind}": (unit, batch, {}) for kind, batch in batches.items()
    }
    for name, (part, settings) in CELLS.items():
        for kind, batch in batches.items():
            for mark, found in given.items():
                cell = found[part](input_size=size, size=size, **settings)
                runs[f"{name}, {kind}{mark}"] = (cell.run, batch, cell.start(rows))
    return measure(runs, repeats)


def compare_ways(rows: int, length: int, size: int, repeats: int) -> Figures:
    batch = Padded(torch.randn(rows, length, size), torch.full((rows,), length))
    cell = LSTM(input_size=size, size=size, without="forget")
    torch.compiler.config.force_disable_caches = True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # torch.jit.script is deprecated
        script = torch.jit.script(loop)
    ways: dict[str, Run] = {
        "as it is": cell.run,
        "state held at every step": partial(run_held, cell),
        "loop by torch.jit.script": partial(run_loop, script, cell),
        "step by torch.compile": partial(run_steps, torch.compile(cell), cell),
        "loop by torch.compile": partial(run_loop, torch.compile(loop, dynamic=False), cell),
    }
    first: dict[str, float] = {}
    for name, run in ways.items():
        begin = time.perf_counter()
        milliseconds(run, batch, cell.start(rows))
        first[name] = time.perf_counter() - begin
    unit: Run = partial(run_torch, nn.LSTM(size, size, batch_first=True))
    runs: dict[str, tuple[Run, Padded, State]] = {"nn.LSTM": (unit, batch, {})}
    found = measure(runs | {name: (run, batch, cell.start(rows)) for name, run in ways.items()}, repeats)
    for name, spent in first.items():
        found[name]["first"] = round(spent, 2)  # seconds of the first run, which compiles
    return found


# -- the command


def show(record: dict[str, Any]) -> None:
    console = Console()
    for shape, found in record["cells"].items():
        table = Table("", "full", "ragged", title=f"{shape}: 1 is {found['nn.LSTM, full']['median']:.1f} ms")
        for name in ("nn.LSTM", *CELLS):
            table.add_row(name, *(with_before(found, f"{name}, {kind}") for kind in ("full", "ragged")))
        console.print(table)
    for shape, found in record["ways"].items():
        table = Table("", "full", "first run", title=f"{shape}: one cell in several ways")
        for name, each in found.items():
            table.add_row(name, f"{each['ratio']:.2f}", f"{each['first']:.1f} s" if "first" in each else "")
        console.print(table)


def with_before(found: Figures, key: str) -> str:
    before = found.get(f"{key}, before")
    return f"{found[key]['ratio']:.2f}" + (f" ({before['ratio']:.2f})" if before else "")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.cells", description="The speed of cells in training.")
    parser.add_argument("--before", type=Path, help="a checkout of earlier code, to compare with")
    parser.add_argument("--out", type=Path, default=Path("results/bench-cells.json"))
    options = parser.parse_args()
    if options.before and not (options.before / "seqloom").is_dir():
        parser.error(f"--before {options.before}: no folder seqloom in it; expected a checkout of Seqloom")
    given = {"": parts("cells")} | ({", before": earlier_parts(options.before)} if options.before else {})
    torch.manual_seed(1)
    record = measuring.record(
        "cells",
        torch.get_num_threads(),
        milliseconds="of processor time, forward and backward; ratio: to nn.LSTM, full",
        repeats=list(SHAPES.values()),
        cells={label(*shape): compare_cells(given, *shape, repeats) for shape, repeats in SHAPES.items()},
        # the largest would compile for minutes
        ways={label(*shape): compare_ways(*shape, repeats) for shape, repeats in list(SHAPES.items())[:2]},
    )
    measuring.write(record, options.out)
    show(record)


def label(rows: int, length: int, size: int) -> str:
    return f"{rows} rows, T {length}, size {size}"


if __name__ == "__main__":
    main()
