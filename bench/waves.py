"""The cost of a sample that a WaveNet draws, early and late: what it keeps does not grow.

    OMP_NUM_THREADS=1 python -m bench.waves [--seconds N] [--out FILE]

A WaveNet of the recipe `wave`, not trained, draws a sound of so many seconds step by step; times are processor times,
by second of the sound.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch

from bench import measuring
from seqloom.config.build import build_model, build_task
from seqloom.config.complete import complete
from seqloom.config.recipes import read_recipe
from seqloom.contracts import Decoder
from seqloom.data.special_tokens import BOS
from seqloom.types import Memory

RATE, SECONDS = 8_000, 60


def model() -> Decoder:
    """The decoder of the recipe."""
    torch.manual_seed(1)
    recipe = complete(read_recipe("wave"), "wave")
    return build_model(recipe, None, build_task(recipe).target).decoder.eval()


@torch.inference_mode()
def drawn(decoder: Decoder, seconds: int, rate: int = RATE) -> list[float]:
    """Microseconds of processor time for each sample, the mean of each second."""
    memory = Memory.empty(1)
    token, state, found = torch.tensor([BOS]), decoder.start(memory), []
    for _ in range(seconds):
        begin = time.process_time()
        for _ in range(rate):
            scores, state = decoder.step(token, state, memory)
            token = torch.multinomial(scores.softmax(-1), 1)[:, 0]
        found.append(1e6 * (time.process_time() - begin) / rate)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.waves", description="The cost of a sample of a WaveNet.")
    parser.add_argument("--seconds", type=int, default=SECONDS)
    parser.add_argument("--out", type=Path, default=Path("results/bench-waves.json"))
    options = parser.parse_args()
    decoder = model()
    drawn(decoder, 1)  # warms up
    costs = drawn(decoder, options.seconds)
    quarter = max(len(costs) // 4, 1)
    first, last = measuring.summary(costs[:quarter]), measuring.summary(costs[-quarter:])
    growth = measuring.significant(last["median"] / first["median"], 3)
    record = measuring.record(
        "waves",
        torch.get_num_threads(),
        shape=f"the recipe wave, {options.seconds} s at {RATE:,} samples per second",
        first_quarter=first,
        last_quarter=last,
        growth=growth,
    )
    measuring.write(record, options.out)
    print(f"{first['median']:.0f} microseconds a sample, {last['median']:.0f} in the last quarter: {growth:.2f} times")


if __name__ == "__main__":
    main()
