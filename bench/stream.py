"""An hour of sound through one stream: the cost of a minute at the beginning and at the end, and the memory.

    OMP_NUM_THREADS=1 python -m bench.stream RUN FILE.tsv [--minutes N] [--out FILE]

The recordings of a data file, one after the other in an endless loop, in chunks of a tenth of a second. Each minute is
fed to the long stream and to a fresh one. Times are processor times; memory is that of the whole process at the end of
each minute of sound.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench import measuring
from seqloom.errors import SeqloomError
from seqloom.predictor import Predictor

CHUNK = 0.1  # seconds


def sound(model: Predictor, data: Path) -> tuple[int, Iterator[np.ndarray]]:
    """The sample rate, and endless chunks."""
    import soundfile

    paths = [example.source for example in model.examples([str(data)])]
    rate = int(soundfile.info(paths[0]).samplerate)

    def chunks() -> Iterator[np.ndarray]:
        size = int(rate * CHUNK)
        for path in cycle(paths):
            samples = soundfile.read(path, dtype="float32")[0]
            yield from (samples[start : start + size] for start in range(0, len(samples), size))

    return rate, chunks()


def resident_megabytes() -> float:
    """Of the process now, not at its peak."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def measure(model: Predictor, data: Path, minutes: int, minute: float = 60.0, **search: Any) -> list[dict[str, float]]:
    """One row per minute of sound; `minute` is its length in seconds."""
    rate, chunks = sound(model, data)
    stream, found = model.stream(**search), []
    for number in range(minutes):
        sounds: list[np.ndarray] = []
        while sum(map(len, sounds)) < minute * rate:
            sounds.append(next(chunks))
        turns = {"seconds": stream, "fresh": model.stream(**search)}
        taken = {}
        for name in sorted(turns, reverse=bool(number % 2)):  # take turns in going first
            began = time.process_time()
            for chunk in sounds:
                turns[name].feed((chunk, rate))
            taken[name] = measuring.significant(time.process_time() - began)
        gc.collect()
        assert stream.memory is not None
        found.append(
            {
                **taken,
                "megabytes": measuring.significant(resident_megabytes()),
                "states": stream.memory.states.shape[1],
                "symbols": len(stream.shown.times),
            }
        )
    return found


def summarise(model: Predictor, beam_size: int, rows: list[dict[str, float]]) -> measuring.Record:
    last = rows[-(len(rows) // 4) :]
    grown = statistics.median(row["megabytes"] for row in last) / rows[1]["megabytes"]  # the first minute warms up
    record = measuring.record(
        "stream",
        torch.get_num_threads(),
        decoder=model.recipe["decoder"]["type"],
        beam_size=beam_size,
        minutes=len(rows),
        factor=measuring.significant(statistics.median(row["seconds"] for row in rows) / 60, 3),
        growth={
            "seconds": measuring.median([row["seconds"] / row["fresh"] for row in last]),
            "megabytes": measuring.significant(grown, 3),
        },
        rows=rows,
    )
    return {**record, "command": "python -m bench.stream RUN FILE.tsv"}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.stream", description="An hour through one stream.")
    parser.add_argument("run", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--minutes", type=int, default=60)
    parser.add_argument("--beam-size", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("results/bench-stream.json"))
    options = parser.parse_args()
    model = Predictor.load(options.run)
    if options.minutes < 4:
        raise SeqloomError(f"--minutes {options.minutes}: expected 4 or more, to compare its quarters")
    rows = measure(model, options.data, options.minutes, beam_size=options.beam_size)
    record = summarise(model, options.beam_size, rows)
    measuring.write(record, options.out)
    print(f"{record['factor']:.3f} s of work per second of sound; in the last quarter: {record['growth']}")


if __name__ == "__main__":
    main()
