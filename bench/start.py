"""Time to the first answer: wall time and memory of whole commands.

    python -m bench.start [--threads N] [--rounds N] [--before FOLDER] [--quick]

Models have random weights and the shapes of `bench.shapes`; an answer has fifteen tokens. Commands take turns; the
first round, which warms the disk cache, is not counted.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, cast

import torch
from rich.console import Console
from rich.table import Table

from bench import commanding, measuring, pairs
from bench.pipe import HOME
from bench.shapes import EOS, SHAPES
from bench.workers.seqloom import recipe
from seqloom.config.build import build_model
from seqloom.storage.run import Run
from seqloom.storage.weights import weights_of

LENGTH = 15  # of an answer, EOS included
SEQLOOM = [sys.executable, "-m", "seqloom"]
EXPORTS = {  # engine: model and arguments
    "CTranslate2": ("transformer", ["--to", "ctranslate2"]),
    "ONNX": ("lstm", ["--to", "onnx"]),
}


def make_run(data: pairs.Prepared, model: str, path: Path) -> Path:
    """A run folder as training leaves it, with random weights."""
    full = recipe(SHAPES[model], data.units, data.vocabulary)
    full["search"] = {**full["search"], "minimum_length": LENGTH - 1, "maximum_length": LENGTH}
    torch.manual_seed(1)
    built = build_model(full, data.task.source, data.task.target)
    if model == "transformer":  # CTranslate2 does not force EOS, so make it likely once it is allowed
        direction = torch.nn.functional.normalize(torch.randn(SHAPES[model]["size"]), dim=0)
        decoder = cast(Any, built.decoder)
        with torch.no_grad():
            decoder.norm.bias.add_(5 * direction)
            decoder.embedding.weight[EOS] += 5 * direction
    run = Run.create(path, full, data.task.save)
    run.publish(weights_of(built))
    return path


def launch(words: list[str], text: str, threads: int, home: Path = HOME, **variables: str) -> dict[str, Any]:
    """Run a command of a checkout once: its time and memory."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "PYTHONPATH": str(home), **variables}
    found = subprocess.run(
        [sys.executable, "-S", "-m", "bench.launching", json.dumps([words, text])],
        cwd=home,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    answer: dict[str, Any] = json.loads(found.stdout)
    return answer


def commands(
    data: pairs.Prepared, folder: Path, threads: int
) -> tuple[dict[str, tuple[list[str], str]], dict[str, str]]:
    """Arguments and standard input by name; and what cannot be measured, with the reason."""
    sentence = data.examples[0].source + "\n"
    made: dict[str, tuple[list[str], str]] = {
        "seqloom --help": ([*SEQLOOM, "--help"], ""),
        "import torch": ([sys.executable, "-c", "import torch"], ""),
    }
    failed: dict[str, str] = {}
    runs = {model: make_run(data, model, folder / model) for model in ("transformer", "lstm")}
    for model, run in runs.items():
        made[f"predict, {model}"] = ([*SEQLOOM, "predict", str(run)], sentence)
    for engine, (model, words) in EXPORTS.items():
        out, name = folder / engine, f"predict, {model} exported to {engine}"
        answer = launch([*SEQLOOM, "export", str(runs[model]), *words, "--out", str(out)], "", threads)
        if answer["failed"]:
            failed[name] = answer["failed"]
        else:
            made[name] = ([*SEQLOOM, "predict", str(out)], sentence)
    return made, failed


def measure(data: pairs.Prepared, rounds: int, threads: int, before: Path | None = None) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="seqloom-bench-") as scratch:
        made, failed = commands(data, Path(scratch), threads)
        homes = dict.fromkeys(made, HOME)
        if before:
            for name in [name for name, (words, _) in made.items() if words[1:3] == SEQLOOM[1:]]:
                made[f"{name}, before"], homes[f"{name}, before"] = made[name], before
        found: measuring.Found = {name: [] for name in made}
        for number in range(1 + rounds):
            for name in list(made)[:: -1 if number % 2 else 1]:
                answer = launch(*made[name], threads, homes[name])
                if answer["failed"]:
                    failed[name] = answer["failed"]
                elif number:
                    found[name].append(answer)
    rows: list[dict[str, Any]] = []
    for name, turns in found.items():
        if name not in failed:
            row: dict[str, Any] = {"command": name, "seconds": measuring.summary([turn["seconds"] for turn in turns])}
            row["over_torch"] = measuring.significant(
                row["seconds"]["median"] - measuring.summary([t["seconds"] for t in found["import torch"]])["median"]
            )
            rows.append({**row, "megabytes": round(max(turn["peak"] for turn in turns))})
    return rows + [{"command": name, "failed": reason} for name, reason in failed.items()]


def show(result: measuring.Record) -> None:
    table = Table("", "seconds", "spread", "beyond import torch", "MB", title=f"{result['threads']} thread(s)")
    for row in result["rows"]:
        table.add_row(row["command"], *cells(row))
    Console().print(table)


def cells(row: dict[str, Any]) -> list[str]:
    if "failed" in row:
        return [row["failed"]]
    spent = row["seconds"]
    spread = f"{spent['lowest']:.2f} to {spent['highest']:.2f}"
    return [f"{spent['median']:.2f}", spread, f"{row['over_torch']:+.2f}", str(row["megabytes"])]


def main() -> None:
    parser = commanding.options("start", "Time to the first answer.", with_peers=False)
    commanding.add_before(parser)
    options = parser.parse_args()
    rounds = 1 if options.quick else options.rounds
    data = pairs.prepare(options.quick)
    rows = measure(data, rounds, options.threads, options.before)
    packages = ("torch", "numpy", "ctranslate2", "onnxruntime")
    result = measuring.record("start", options.threads, packages, rounds=rounds, data=data.name, rows=rows)
    measuring.write(result, commanding.out(options, "start"))
    show(result)


if __name__ == "__main__":
    main()
