"""Exported models compared with their runs, and with direct calls of the engine ("by hand").

    OMP_NUM_THREADS=1 python -m bench.engines --transformer RUN --recurrent RUN --data SOURCES TARGETS [--out FILE]

Both runs are exported, the Transformer also in 8 bits, and all predict the same sentences: the share of outputs that
are those of the run, the metrics of the task, the time. By hand is CTranslate2 with the same options on the same
batches, from tokens to tokens, without reading or writing text. All take turns; times are processor times.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from seqloom.engines.ctranslate2 import CTranslate2, names, search_options, supported, suppressed
from seqloom.engines.export import export
from seqloom.engines.exported import Exported
from seqloom.inference.constraints import build_constraints
from seqloom.inference.find import batches
from seqloom.inference.system import build_search, encode_source
from seqloom.predictor import Predictor
from seqloom.storage.files import replace_file, to_json

BEAMS = {"greedy": 1, "beam of 5": 5}
EXPORTS = {
    "ctranslate2": ("transformer", False),
    "ctranslate2, int8": ("transformer", True),
    "onnx": ("recurrent", False),
}
PACKAGES = ("torch", "numpy", "ctranslate2", "onnxruntime")
GATES = {"greedy": 0.995, "beam of 5": 0.98}  # the share of outputs that are those of the run, in full precision
METRIC, SLOWER = 0.1, 1.05


def by_hand(model: Exported, sources: list[str], beam_size: int) -> Callable[[], None]:
    """The engine alone, with batches and options prepared."""
    engine, search = model.system.model, supported(build_search(model.system, beam_size=beam_size))
    assert isinstance(engine, CTranslate2)
    encoded = [encode_source(model.system, source)[0] for source in sources]
    options = {**search_options(search), "suppress_sequences": suppressed(build_constraints(model.system, None))}
    jobs = []
    for rows in batches([len(each) for each in encoded], beam_size):
        batch = [encoded[row] for row in rows]
        jobs.append(([names(source) for source in batch], max(engine.limits(batch, search.options, 0))))

    def run() -> None:
        for batch, limit in jobs:
            engine.translator.translate_batch(
                batch,
                max_decoding_length=limit - 1,
                max_input_length=0,
                return_end_token=True,
                return_scores=True,
                **options,
            )

    return run


def seconds(run: Callable[[], Any]) -> float:
    """Processor time."""
    begin = time.process_time()
    run()
    return time.process_time() - begin


def take_times(runs: dict[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """Each once per round; every other round runs backwards. The first round is not counted."""
    found: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds + 1):
        for name in list(runs) if number % 2 else list(runs)[::-1]:
            spent = seconds(runs[name])
            if number:
                found[name].append(spent)
        print(f"round {number} of {rounds}", file=sys.stderr)
    return found


def figures(values: list[float], unit: list[float] | None = None) -> dict[str, float]:
    """Median and spread in seconds; the ratio is the median of the ratios within rounds."""
    found = {"median": statistics.median(values), "lowest": min(values), "highest": max(values)}
    if unit:
        found["ratio"] = statistics.median(ours / theirs for ours, theirs in zip(values, unit))
    return {name: round(value, 3) for name, value in found.items()}


def measure(
    models: dict[str, Predictor | Exported], sources: list[str], references: Any, rounds: int
) -> dict[str, Any]:
    """Outputs, metrics and times of each model, for greedy and beam search."""
    record: dict[str, Any] = {}
    for label, beam_size in BEAMS.items():
        outputs = {name: model.predict(sources, beam_size=beam_size) for name, model in models.items()}
        runs: dict[str, Callable[[], Any]] = {
            name: partial(model.predict, sources, beam_size=beam_size) for name, model in models.items()
        }
        for name, model in models.items():
            if isinstance(model, Exported) and isinstance(model.system.model, CTranslate2):
                runs[f"{name}, by hand"] = by_hand(model, sources, beam_size)
        spent = take_times(runs, rounds)
        record[label] = {}
        for name in runs:
            found: dict[str, Any] = {"seconds": figures(spent[name], spent.get(f"{name}, by hand"))}
            if name in models:
                kind = EXPORTS[name][0] if name in EXPORTS else name
                found["metrics"] = models[name].task.measure(outputs[name], references)
                same = sum(ours == theirs for ours, theirs in zip(outputs[name], outputs[kind]))
                found["identical"] = same / len(sources)
                found["against its run"] = figures(spent[name], spent[kind])["ratio"]
            record[label][name] = found
    return record


def gates(record: dict[str, Any]) -> dict[str, bool]:
    """The gates of exports in full precision."""
    found = {}
    for label, entries in record.items():
        for name, (kind, int8) in EXPORTS.items():
            if name not in entries or int8:
                continue
            ours, theirs = entries[name], entries[kind]
            metric = next(iter(theirs["metrics"]))
            found[f"{name}, {label}: {GATES[label]:.1%} identical"] = ours["identical"] >= GATES[label]
            found[f"{name}, {label}: {metric} within {METRIC}"] = (
                abs(ours["metrics"][metric] - theirs["metrics"][metric]) <= METRIC
            )
            if "ratio" in ours["seconds"]:
                found[f"{name}, {label}: at most {SLOWER - 1:.0%} slower than by hand"] = (
                    ours["seconds"]["ratio"] <= SLOWER
                )
    return found


def show(record: dict[str, Any]) -> None:
    console = Console()
    for label, entries in record["search"].items():
        metrics = list(next(iter(entries.values()))["metrics"])
        table = Table("", "identical", *metrics, "seconds", "relative to its run", "relative to by hand", title=label)
        for name, each in entries.items():
            values = (
                [f"{each['metrics'][metric]:.2f}" for metric in metrics] if "metrics" in each else [""] * len(metrics)
            )
            identical = f"{each['identical']:.1%}" if "identical" in each else ""
            against, ratio = each.get("against its run", ""), each["seconds"].get("ratio", "")
            table.add_row(name, identical, *values, str(each["seconds"]["median"]), str(against), str(ratio))
        console.print(table)
    for gate, met in record["gates"].items():
        console.print(f"{'met' if met else 'NOT MET'}: {gate}")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.engines", description="Exported models compared with their runs."
    )
    parser.add_argument("--transformer", type=Path, required=True, help="a run for ctranslate2")
    parser.add_argument("--recurrent", type=Path, required=True, help="a run for onnx, on the same data")
    parser.add_argument("--data", nargs=2, required=True, help="sources and targets, line by line")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, help="only the first N examples; not recorded unless --out is given")
    parser.add_argument("--out", type=Path, help="default: results/bench-engines.json")
    options = parser.parse_args()
    torch.set_num_threads(1)
    models: dict[str, Predictor | Exported] = {
        name: Predictor.load(getattr(options, name)) for name in ("transformer", "recurrent")
    }
    with tempfile.TemporaryDirectory() as house:
        for number, (name, (kind, int8)) in enumerate(EXPORTS.items()):
            to, folder = name.partition(",")[0], Path(house) / str(number)
            models[name] = Exported.load(export(getattr(options, kind), to, folder, int8=int8, force=True))
        task = models["transformer"].task
        examples = list(models["transformer"].examples(options.data))[: options.count]
        sources, references = task.references(examples)
        found = measure(models, sources, references, options.rounds)
    record = {
        "name": "bench-engines",
        "command": "python -m bench.engines",
        "threads": 1,
        "versions": {"python": platform.python_version(), **{name: metadata.version(name) for name in PACKAGES}},
        "examples": len(sources),
        "rounds": options.rounds,
        "seconds": "of processor time for all examples; ratio: to calling the engine by hand, median within rounds",
        "search": found,
        "gates": gates(found),
    }
    out = options.out or (None if options.count else Path("results/bench-engines.json"))
    if out:
        out.parent.mkdir(parents=True, exist_ok=True)
        replace_file(out, to_json(record))
    show(record)


if __name__ == "__main__":
    main()
