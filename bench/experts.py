"""The cost of a mixture of experts, relative to a feed-forward layer of as many operations.

    OMP_NUM_THREADS=1 python -m bench.experts [--repeats N] [--out FILE]

32 experts, of which 2 are active, in training mode: gate, noise, dispatch, importance and load, forward and backward.
They are compared with a feed-forward layer whose hidden layer is twice as wide as that of one expert, and with the same
experts if every one computes every position (dense dispatch). All take turns, and times are processor times.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bench import measuring
from seqloom.nn.layers.experts import Experts
from seqloom.nn.layers.transformer import FeedForward
from seqloom.nn.ops.balance import squared_variation

TOKENS, SIZE, WIDTHS, EXPERTS, ACTIVE, WARMING = 4096, 256, (256, 512), 32, 2, 2
WIDEST = 8192  # hidden units of all experts: with more, dense dispatch would take most of the time of the benchmark
REFERENCE, OURS = "feed-forward", "experts"


def systems(size: int, hidden: int, experts: int, active: int) -> dict[str, Callable[[Tensor], Tensor]]:
    """The loss of each system, given its input (N, size)."""
    torch.manual_seed(1)
    dense = FeedForward(size=size, hidden=active * hidden, dropout=0.0)
    mixture = Experts(size=size, experts=experts, active_experts=active, hidden=hidden)

    def sparse(values: Tensor) -> Tensor:
        found, routing = mixture(values)
        assert routing.load is not None
        costs = squared_variation(routing.importance.sum(0)) + squared_variation(routing.load.sum(0))
        return found.sum() + costs

    def every(values: Tensor) -> Tensor:
        gates = mixture.route(values).importance
        inner = torch.einsum("ns,ehs->enh", values, mixture.inner) + mixture.inner_bias[:, None]
        outputs = torch.einsum("enh,esh->ens", inner.relu(), mixture.outer) + mixture.outer_bias[:, None]
        return torch.einsum("ne,ens->ns", gates, outputs).sum()

    made: dict[str, Callable[[Tensor], Tensor]] = {REFERENCE: lambda values: dense(values).sum(), OURS: sparse}
    if experts * hidden <= WIDEST:
        made["experts, dense dispatch"] = every
    return made


def compare(
    tokens: int, size: int, hidden: int, repeats: int, experts: int = EXPERTS, active: int = ACTIVE
) -> dict[str, dict[str, Any]]:
    """Milliseconds of processor time, and the time relative to the feed-forward layer."""
    made = systems(size, hidden, experts, active)
    found: dict[str, list[float]] = {name: [] for name in made}
    values = torch.randn(tokens, size)
    for turn in range(WARMING + repeats):
        for name, loss in made.items():
            given = values.clone().requires_grad_()
            begin = time.process_time()
            loss(given).backward()
            if turn >= WARMING:
                found[name].append(1000 * (time.process_time() - begin))
    return {
        name: {
            "milliseconds": measuring.summary(each),
            "ratio": measuring.median([one / other for one, other in zip(each, found[REFERENCE])]),
        }
        for name, each in found.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.experts", description="The cost of a mixture of experts.")
    parser.add_argument("--repeats", type=int, default=11)
    parser.add_argument("--out", type=Path, default=Path("results/bench-experts.json"))
    options = parser.parse_args()
    record = measuring.record(
        "experts",
        torch.get_num_threads(),
        shape=f"{TOKENS:,} tokens, size {SIZE}, {EXPERTS} experts of which {ACTIVE} are active",
        repeats=options.repeats,
        hidden={str(hidden): compare(TOKENS, SIZE, hidden, options.repeats) for hidden in WIDTHS},
    )
    measuring.write(record, options.out)
    for hidden, found in record["hidden"].items():
        for name, each in found.items():
            print(f"hidden {hidden}  {name:24} {each['milliseconds']['median']:8.1f} ms  ratio {each['ratio']:.2f}")


if __name__ == "__main__":
    main()
