"""The cost of the sum over a transducer's alignments, and how it grows with inputs, labels and vocabulary.

    OMP_NUM_THREADS=1 python -m bench.lattice [--repeats N] [--out FILE]

From logits (B, T, U + 1, V) to their gradient, by `nn/ops/lattice.py` and by autograd through a scan over rows, the
best that is possible without a gradient of one's own: one logcumsumexp over all u for each t. Also where logits are
sums of those of inputs, (B, T, V), and of outputs, (B, U + 1, V), so that the lattice of logits is never made. All take
turns, and times are processor times. Memory is measured in a process of its own, beyond the inputs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from bench import measuring
from bench.pipe import HOME, peak_megabytes
from bench.scale import exponent
from seqloom.nn.ops.lattice import all_paths, factored_token_log_probs, token_log_probs

BLANK = 0
WARMING = 1
TIMES = (1, 2, 4)  # how T, U and V grow


class Shape(NamedTuple):
    B: int
    T: int
    U: int
    V: int


BASE, SMALL = Shape(8, 200, 50, 128), Shape(3, 60, 20, 32)


def row_scan(logits: Tensor, labels: Tensor) -> Tensor:
    """alpha, one input after the other, by cumulative sums over u; with autograd's gradient.  (B,)"""
    log_probs = logits.log_softmax(-1)
    places = labels[:, None, :, None].expand(-1, logits.shape[1], -1, 1)
    emitted = log_probs[:, :, :-1].gather(3, places)[..., 0].cumsum(2)
    offsets = functional.pad(emitted, (1, 0)).unbind(1)  # of all labels before u, written at one input
    blanks = log_probs[..., BLANK].unbind(1)
    alpha = offsets[0]
    for blank, offset in zip(blanks, offsets[1:]):
        alpha = offset + torch.logcumsumexp(alpha + blank - offset, 1)
    return alpha[:, -1] + blanks[-1][:, -1]


def sum_paths(log_probs: Tensor) -> Tensor:
    """From the log-probabilities of blanks and labels, without padding.  (2, B, T, U + 1) -> (B,)"""
    blank, label = log_probs
    rows, inputs, width = blank.shape
    lengths = (torch.full((rows,), size, device=blank.device) for size in (inputs, width - 1))
    return all_paths(blank, label[:, :, :-1], blank[:, -1, -1], *lengths)


def blanks_and_labels(labels: Tensor) -> Tensor:
    """Blank, and the next label.  (B, U) -> (2, B, U + 1)"""
    following = functional.pad(labels, (0, 1))
    return torch.stack([torch.full_like(following, BLANK), following])


def ours(logits: Tensor, labels: Tensor) -> Tensor:
    return sum_paths(token_log_probs(logits, blanks_and_labels(labels)))


def ours_added(inputs: Tensor, outputs: Tensor, labels: Tensor) -> Tensor:
    return sum_paths(factored_token_log_probs(inputs, outputs, blanks_and_labels(labels)))


SYSTEMS: dict[str, Callable[..., Tensor]] = {
    "autograd, row scan": row_scan,
    "ours": ours,
    "ours, logits that are sums": ours_added,
}


def given(name: str, shape: Shape, dtype: torch.dtype = torch.float32) -> tuple[list[Tensor], Tensor]:
    """The inputs of a system, and labels."""
    chance = torch.Generator().manual_seed(1)
    rows, inputs, width, vocabulary = shape
    shapes = [(rows, inputs, width + 1, vocabulary)]
    if SYSTEMS[name] is ours_added:
        shapes = [(rows, inputs, vocabulary), (rows, width + 1, vocabulary)]
    labels = torch.randint(1, vocabulary, (rows, width), generator=chance)
    return [torch.randn(*each, generator=chance, dtype=dtype).requires_grad_() for each in shapes], labels


def gradients(name: str, leaves: list[Tensor], labels: Tensor) -> tuple[Tensor, ...]:
    return torch.autograd.grad(-SYSTEMS[name](*leaves, labels).sum(), leaves)


def difference(shape: Shape = SMALL) -> float:
    """The largest difference between our gradient and autograd's, in float64."""
    leaves, labels = given("ours", shape, torch.float64)
    (one,), (other,) = (gradients(name, leaves, labels) for name in ("ours", "autograd, row scan"))
    inputs, outputs = given("ours, logits that are sums", shape, torch.float64)[0]
    by_sums = gradients("ours, logits that are sums", [inputs, outputs], labels)
    lattice = (inputs[:, :, None] + outputs[:, None]).detach().requires_grad_()
    (at_lattice,) = gradients("autograd, row scan", [lattice], labels)
    pairs = [(one, other), (by_sums[0], at_lattice.sum(2)), (by_sums[1], at_lattice.sum(1))]
    return max((first - second).abs().max().item() for first, second in pairs)


def measure(shape: Shape, repeats: int) -> dict[str, list[float]]:
    """Milliseconds of processor time, one list per system."""
    known = {name: given(name, shape) for name in SYSTEMS}
    found: dict[str, list[float]] = {name: [] for name in SYSTEMS}
    for turn in range(WARMING + repeats):
        for name, (leaves, labels) in known.items():
            begin = time.process_time()
            gradients(name, leaves, labels)
            if turn >= WARMING:
                found[name].append(1000 * (time.process_time() - begin))
    return found


@cache
def megabytes(name: str, shape: Shape) -> float:
    """The peak memory of a process that runs it once, beyond its memory before."""
    program = f"from bench import lattice; lattice.peak({name!r}, lattice.Shape{tuple(shape)})"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=HOME, check=True, capture_output=True, text=True)
    return float(json.loads(done.stdout))


def peak(name: str, shape: Shape) -> None:
    gradients(name, *given(name, Shape(1, 2, 1, 4)))  # load what is loaded at first use
    leaves, labels = given(name, shape)
    before = peak_megabytes()
    gradients(name, leaves, labels)
    print(peak_megabytes() - before)


def growth(repeats: int, base: Shape = BASE, times: tuple[int, ...] = TIMES) -> list[dict[str, Any]]:
    """Time and memory of each system while one size grows."""
    found = []
    for axis in ("T", "U", "V"):
        shapes = [base._replace(**{axis: factor * getattr(base, axis)}) for factor in times]
        turns = [measure(shape, repeats) for shape in shapes]
        for name in SYSTEMS:
            spent = [measuring.significant(statistics.median(each[name])) for each in turns]
            memory = [measuring.significant(megabytes(name, shape)) for shape in shapes]
            values = tuple(getattr(shape, axis) for shape in shapes)
            found.append(
                {
                    "name": axis,
                    "values": list(values),
                    "system": name,
                    "milliseconds": spent,
                    "time_exponent": exponent(values, spent),
                    "megabytes": memory,
                    "memory_exponent": exponent(values, memory),
                }
            )
    return found


def compare(repeats: int, base: Shape = BASE) -> dict[str, dict[str, Any]]:
    found = measure(base, repeats)
    unit = found["autograd, row scan"]
    return {
        name: {
            "milliseconds": measuring.summary(each),
            "ratio": measuring.median([one / other for one, other in zip(each, unit)]),
            "megabytes": measuring.significant(megabytes(name, base)),
        }
        for name, each in found.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.lattice", description="The cost of a transducer's lattice.")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--out", type=Path, default=Path("results/bench-lattice.json"))
    options = parser.parse_args()
    record = measuring.record(
        "lattice",
        torch.get_num_threads(),
        shape=", ".join(f"{name} = {size}" for name, size in BASE._asdict().items()),
        repeats=options.repeats,
        difference=difference(),
        systems=compare(options.repeats),
        growth=growth(max(options.repeats // 3, 1)),
    )
    measuring.write(record, options.out)
    for name, each in record["systems"].items():
        print(f"{name:28} {each['milliseconds']['median']:8.1f} ms  {each['ratio']:5.2f}  {each['megabytes']:6.0f} MB")
    for each in record["growth"]:
        time_grows, memory_grows = each["time_exponent"], each["memory_exponent"]
        print(f"{each['name']} {each['system']:28} time ^{time_grows:.2f}  memory ^{memory_grows:.2f}")


if __name__ == "__main__":
    main()
