"""Speed of training: target tokens per second, and memory.

    python -m bench.train [--threads N] [--peers NAME ...] [--models NAME ...] [--rounds N] [--before FOLDER] [--quick]

All systems build the same model and train on the same batches (about 4,096 tokens in rows of similar length, padding
included) with the same dropout, label smoothing, clipping and optimiser. Each is a process of its own; they take turns.
A figure is a median over rounds with its spread; a ratio is the median of the ratios to the bare loop within rounds.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from bench import commanding, measuring, pairs, peers
from bench.commanding import System
from bench.pipe import Message
from bench.shapes import SHAPES
from seqloom.data import batching

TOKENS = 4096  # per batch, padding included
BATCHES = 3  # per turn
UNIT = "bare loop"
SYSTEMS = {
    UNIT: System("bare"),
    "bare loop, logits everywhere": System("bare", words={"everywhere": True}, kinds=("transformer",)),
    "Seqloom": System("seqloom"),
    "HF transformers (Marian)": System("transformers", "transformers", kinds=("transformer",)),
    "eole": System("eole", "eole", kinds=("transformer",)),
    "OpenNMT-py": System("opennmt", "opennmt"),
    "JoeyNMT": System("joeynmt", "joeynmt"),
    "Sockeye": System("sockeye", "sockeye", kinds=("transformer",)),
}


def measure(
    model: str, job: Message, rounds: int, installed: dict[str, peers.Installed], before: Path | None
) -> list[dict[str, Any]]:
    """One row per system."""
    shape = SHAPES[model]
    with commanding.workers(SYSTEMS, {**job, "shape": shape}, installed, before) as workers:
        found = measuring.take_turns(workers, rounds)
        reasons = {name: worker.reason for name, worker in workers.items()}
    rows: list[dict[str, Any]] = []
    for name, turns in found.items():
        row: dict[str, Any] = {"model": model, "system": name}
        if reasons[name]:
            rows.append({**row, "failed": reasons[name]})
            continue
        row["speed"] = measuring.summary([turn["tokens"] / turn["seconds"] for turn in turns])
        row |= commanding.ratios(found, UNIT, name)
        row["megabytes"] = round(max(turn["peak"] for turn in turns))
        row["loss"] = measuring.significant(turns[-1]["loss"])
        rows.append(row)
    absent = commanding.missing(SYSTEMS, shape["kind"], installed)
    return rows + [{"model": model, "system": name, "failed": reason} for name, reason in absent.items()]


def show(result: measuring.Record) -> None:
    for model in dict.fromkeys(each["model"] for each in result["rows"]):
        title = f"{model}, {result['threads']} thread(s)"
        table = Table("", "tokens/s", "spread", "ratio", "by processor", "MB", "loss", title=title)
        for each in result["rows"]:
            if each["model"] == model:
                table.add_row(each["system"], *cells(each))
        Console().print(table)


def cells(row: dict[str, Any]) -> list[str]:
    if "failed" in row:
        return [row["failed"]]
    speed = row["speed"]
    return [
        f"{speed['median']:.0f}",
        f"{speed['lowest']:.0f} to {speed['highest']:.0f}",
        f"{row['ratio']:.2f}" if "ratio" in row else "",
        f"{row['processor_ratio']:.2f}" if "processor_ratio" in row else "",
        str(row["megabytes"]),
        f"{row['loss']:.3f}",
    ]


def main() -> None:
    parser = commanding.options("train", "Speed of training.")
    parser.add_argument("--models", nargs="+", choices=list(SHAPES), default=list(SHAPES))
    options = parser.parse_args()
    rounds, count, tokens = (1, 1, 256) if options.quick else (options.rounds, BATCHES, TOKENS)
    installed = peers.install(peers.choose(options.peers))
    data = pairs.prepare(options.quick)
    lengths = np.asarray(data.corpus.lengths)
    epoch = data.task.plan(lengths, tokens, seed=1, epoch=0)
    picked = pairs.spread_batches(epoch, np.maximum(lengths[:, 0], lengths[:, 1] + 1), count)
    plan = batching.Plan(epoch.rows, epoch.offsets[picked])
    with tempfile.TemporaryDirectory(prefix="seqloom-bench-") as scratch:
        job = {**data.job(Path(scratch)), "task": "train", "threads": options.threads}
        pairs.write_batches(data.corpus, plan, Path(scratch) / "batches.npz")
        job["batches"] = str(Path(scratch) / "batches.npz")
        job["rows"] = [[int(row) for row in plan[number]] for number in range(len(plan))]
        rows = [each for model in options.models for each in measure(model, job, rounds, installed, options.before)]
    result = measuring.record(
        "train",
        options.threads,
        peers=peers.describe(installed),
        data=data.name,
        vocabulary=data.vocabulary,
        padding=round(pairs.padding(data.corpus, epoch), 4),
        batches=count,
        rounds=rounds,
        rows=rows,
    )
    measuring.write(result, commanding.out(options, f"train-{options.threads}"))
    show(result)


if __name__ == "__main__":
    main()
