"""The cost of a training step with each objective, relative to cross-entropy.

    OMP_NUM_THREADS=1 python -m bench.objectives [--repeats N] [--out FILE]

Forward and backward over one batch; all take turns, and times are processor times. The expected cost counts passes of
the decoder, 1 for a forward and 2 for a backward pass, relative to the three of cross-entropy; the encoder makes three
once. The models are untrained, so that outputs run to their limit, here the length of the targets, and beam-search
optimisation has a violation at nearly every step.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench import measuring
from seqloom.contracts import Decoder, Encoder, Objective
from seqloom.nn.attention.additive import Additive
from seqloom.nn.decoders.recurrent import Recurrent
from seqloom.nn.decoders.transformer import Transformer
from seqloom.nn.encoders.recurrent import Recurrent as RecurrentEncoder
from seqloom.nn.encoders.transformer import Transformer as TransformerEncoder
from seqloom.nn.model import Model
from seqloom.objectives.any_order import AnyOrder
from seqloom.objectives.cross_entropy import CrossEntropy
from seqloom.objectives.dad import DataAsDemonstrator
from seqloom.objectives.end_to_end import EndToEnd
from seqloom.objectives.expected_reward import ExpectedReward
from seqloom.objectives.margin import BeamSearchOptimisation
from seqloom.objectives.minimum_risk import MinimumRisk
from seqloom.objectives.mixer import Mixer
from seqloom.objectives.raml import RewardAugmented
from seqloom.objectives.rollouts import Rollouts
from seqloom.objectives.scheduled_sampling import ScheduledSampling
from seqloom.types import Batch, Padded

ROWS, LENGTH, VOCABULARY, SIZE = 32, 16, 2000, 256
WARMING = 2


def models() -> dict[str, Model]:
    given = {"vocabulary": VOCABULARY}
    ends = {"memory_size": SIZE, "bos": 2, "eos": 3}
    width: dict[str, Any] = {"embedding_size": SIZE, "size": SIZE}
    deep: dict[str, Any] = {"size": SIZE, "layers": 3, "dropout": 0.0}
    parts: dict[str, tuple[Encoder, Decoder]] = {
        "recurrent": (
            RecurrentEncoder(**given, embedding_size=SIZE, size=SIZE // 2, bidirectional=True),
            Recurrent(**given, **ends, **width, attention=Additive),
        ),
        "transformer": (TransformerEncoder(**given, **deep), Transformer(**given, **ends, **deep)),
    }
    return {name: Model(*each).train() for name, each in parts.items()}


def objectives() -> dict[str, tuple[Objective, float, float]]:
    """By name: the objective, the progress of training, and the passes of the decoder that it needs."""
    common: dict[str, Any] = {"hidden_size": SIZE, "decode": None, "longest": 1.0}
    return {
        "cross-entropy": (CrossEntropy(), 0.5, 3),
        "scheduled sampling, steps": (ScheduledSampling(form="steps"), 0.5, 1 + 3),
        "scheduled sampling, two passes": (ScheduledSampling(form="two_passes"), 0.5, 1 + 3),
        "DAD": (DataAsDemonstrator(form="steps"), 0.5, 1 + 3),
        "DAD, the original": (Rollouts(rounds=1), 0.5, 0.5 + 3),  # half of the batches are rolled out
        "E2E, all tokens": (EndToEnd(), 1.0, 3),
        "RAML": (RewardAugmented(vocabulary=VOCABULARY, decode=None), 0.5, 3),
        "RAML, 4 outputs": (RewardAugmented(vocabulary=VOCABULARY, decode=None, samples=4), 0.5, 4 * 3),
        "MIXER, all tokens": (Mixer(hidden_size=SIZE, decode=None), 1.0, 1 + 3),
        "expected reward, 5 outputs": (ExpectedReward(**common), 0.5, 5 * (1 + 3)),
        "expected reward, greedy baseline": (ExpectedReward(**common, baseline="greedy"), 0.5, 5 * (1 + 3) + 1),
        "minimum risk, 10 outputs": (MinimumRisk(decode=None, longest=1.0), 0.5, 10 + 11 * 3),
        "any order, best of 8": (AnyOrder(), 0.5, 8 + 3),
        "BSO, beam of 6": (BeamSearchOptimisation(constraints=None), 1.0, 6 + 3),
    }


def batch() -> Batch:
    chance = torch.Generator().manual_seed(1)
    lengths = torch.full((ROWS,), LENGTH)
    source, body = (torch.randint(4, VOCABULARY, (ROWS, LENGTH), generator=chance) for _ in range(2))
    inputs = torch.cat([torch.full((ROWS, 1), 2), body[:, 1:]], dim=1)
    targets = torch.cat([body[:, 1:], torch.full((ROWS, 1), 3)], dim=1)
    return Batch(Padded(source, lengths), Padded(inputs, lengths), Padded(targets, lengths))


def milliseconds(compute: Callable[[], torch.Tensor]) -> float:
    """Processor time of one forward and backward pass."""
    begin = time.process_time()
    compute().backward()
    return 1000 * (time.process_time() - begin)


def measure(model: Model, given: Batch, repeats: int) -> dict[str, dict[str, float]]:
    """Relative to cross-entropy; the encoder alone is measured to know the share of the decoder."""
    known = objectives()

    def step(name: str) -> Callable[[], torch.Tensor]:
        objective, progress, _ = known[name]
        prepared = objective.prepare(given, np.random.default_rng(1))  # not part of the step
        return lambda: objective(model, prepared, progress).total

    steps = {name: step(name) for name in known}
    steps["the encoder alone"] = lambda: model.encode(given.source).states.sum()
    found: dict[str, list[float]] = {name: [] for name in steps}
    for turn in range(WARMING + repeats):
        for name, compute in steps.items():
            spent = milliseconds(compute)
            if turn >= WARMING:
                found[name].append(spent)
    medians = {name: statistics.median(each) for name, each in found.items()}
    unit = medians["cross-entropy"]
    encoder = min(medians.pop("the encoder alone") / unit, 1.0)
    return {
        name: {
            **measuring.summary(found[name]),
            "multiple": measuring.significant(spent / unit, 3),
            "expected": measuring.significant(encoder + (1 - encoder) * known[name][2] / 3, 3),
        }
        for name, spent in medians.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.objectives", description="The cost of objectives.")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--out", type=Path, default=Path("results/bench-objectives.json"))
    options = parser.parse_args()
    torch.manual_seed(1)
    record = measuring.record(
        "objectives",
        torch.get_num_threads(),
        shape=f"{ROWS} rows, {LENGTH} tokens, vocabulary {VOCABULARY}, size {SIZE}",
        repeats=options.repeats,
        models={name: measure(model, batch(), options.repeats) for name, model in models().items()},
    )
    measuring.write(record, options.out)
    for name, found in record["models"].items():
        print(f"{name}: cross-entropy takes {found['cross-entropy']['median']:.1f} ms")
        for objective, each in found.items():
            print(f"  {objective:34} {each['multiple']:6.2f}  expected {each['expected']:6.2f}")


if __name__ == "__main__":
    main()
