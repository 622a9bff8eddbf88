"""The cost of pointing: a training step of a pointer network, relative to one of its two LSTMs alone.

    OMP_NUM_THREADS=1 python -m bench.pointer [--repeats N] [--out FILE]

Convex hulls of 50 points, 128 at a time, forward and backward. Ours is the whole step with reading, pointing and
cross-entropy. It is compared with torch's nn.LSTM of the same sizes over the same inputs. Both take turns, and times
are processor times.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from bench import measuring
from seqloom.data.codecs.numbers import Numbers
from seqloom.data.codecs.places import Places
from seqloom.data.generators.hull import hull
from seqloom.data.special_tokens import BOS, EOS, SPECIAL
from seqloom.nn.attention.additive import Additive
from seqloom.nn.decoders.pointer import Pointer
from seqloom.nn.encoders.recurrent import Recurrent
from seqloom.nn.model import Model
from seqloom.objectives.cross_entropy import CrossEntropy
from seqloom.tasks.pairs import Pairs
from seqloom.types import Batch

POINTS, ROWS, EMBEDDING, SIZE, WARMING = 50, 128, 64, 128, 2


def hulls(points: int = POINTS, rows: int = ROWS) -> Batch:
    """A training batch."""
    task = Pairs(source=Numbers(), target=Places())
    examples = hull(rows, shortest=points, longest=points)
    assert task.source is not None
    task.source.fit(example.source for example in examples)
    return task.batch(
        [task.source.read(example.source) for example in examples],
        [task.encode(example.target) for example in examples],
    )


def pointing(batch: Batch, size: int = SIZE) -> Callable[[], Tensor]:
    """The loss of a pointer network."""
    torch.manual_seed(1)
    encoder = Recurrent(features=2, embedding_size=EMBEDDING, size=size)
    decoder = Pointer(
        vocabulary=len(SPECIAL),
        memory_size=size,
        bos=BOS,
        eos=EOS,
        source_features=2,
        embedding_size=EMBEDDING,
        size=size,
        attention=partial(Additive, size=size),
    )
    model, objective = Model(encoder, decoder).train(), CrossEntropy().train()
    return lambda: objective(model, batch, 0.0).total


def recurrence(batch: Batch, size: int = SIZE) -> Callable[[], Tensor]:
    """Both LSTMs over random vectors."""
    torch.manual_seed(1)
    assert batch.source is not None
    layers = [nn.LSTM(EMBEDDING, size, batch_first=True) for _ in range(2)]
    inputs = [torch.randn(*part.values.shape[:2], EMBEDDING) for part in (batch.source, batch.inputs)]
    return lambda: torch.stack([layer(values)[0].sum() for layer, values in zip(layers, inputs)]).sum()


SYSTEMS = {"nn.LSTM, twice": recurrence, "pointer network": pointing}


def compare(batch: Batch, repeats: int, size: int = SIZE) -> dict[str, dict[str, Any]]:
    """Milliseconds of processor time per step, and the speed relative to the recurrence."""
    steps = {name: make(batch, size) for name, make in SYSTEMS.items()}
    found: dict[str, list[float]] = {name: [] for name in steps}
    for turn in range(WARMING + repeats):
        for name, step in steps.items():
            begin = time.process_time()
            step().backward()
            if turn >= WARMING:
                found[name].append(1000 * (time.process_time() - begin))
    alone = found["nn.LSTM, twice"]
    return {
        name: {
            "milliseconds": measuring.summary(each),
            "examples_per_second": measuring.significant(1000 * len(batch.targets.lengths) / measuring.median(each)),
            "ratio": measuring.median([one / other for one, other in zip(alone, each)]),
        }
        for name, each in found.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.pointer", description="The cost of pointing.")
    parser.add_argument("--repeats", type=int, default=21)
    parser.add_argument("--out", type=Path, default=Path("results/bench-pointer.json"))
    options = parser.parse_args()
    batch = hulls()
    record = measuring.record(
        "pointer",
        torch.get_num_threads(),
        shape=f"{POINTS} points, rings of up to {batch.targets.values.shape[1] - 1}, {ROWS} at a time, size {SIZE}",
        repeats=options.repeats,
        systems=compare(batch, options.repeats),
    )
    measuring.write(record, options.out)
    for name, each in record["systems"].items():
        print(f"{name:18} {each['milliseconds']['median']:8.1f} ms  {each['examples_per_second']:8.0f} examples/s")


if __name__ == "__main__":
    main()
