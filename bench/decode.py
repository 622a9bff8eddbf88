"""Speed of decoding: milliseconds per sentence, and how the cost of a token grows with the length of the output.

    python -m bench.decode [--threads N] [--peers NAME ...] [--models NAME ...] [--rounds N] [--before FOLDER] [--quick]

Weights are random, shapes are the same. Every output is as long as the longest source of its batch: EOS is forbidden
before, and the search ends there, so that all make the same steps. Sentences are those of the validation set, in
batches of similar length. Seqloom is measured from text to text, the others from tokens to tokens.
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
from bench.pipe import Message, Worker
from bench.shapes import SHAPES

UNIT = "bare loop with a cache"
SYSTEMS = {
    UNIT: System("caching", kinds=("transformer",)),
    "Seqloom": System("seqloom"),
    "HF transformers (Marian)": System("transformers", "transformers", kinds=("transformer",)),
    "eole": System("eole", "eole", kinds=("transformer",)),
    "OpenNMT-py": System("opennmt", "opennmt"),
    "CTranslate2": System("ctranslate2", "ctranslate2", {"precision": "float32"}, ("transformer",)),
    "CTranslate2, int8": System("ctranslate2", "ctranslate2", {"precision": "int8"}, ("transformer",)),
    "JoeyNMT": System("joeynmt", "joeynmt"),
    "Sockeye": System("sockeye", "sockeye", kinds=("transformer",)),
}
SETTINGS = {  # batch size, beam size
    "batch 1, greedy": (1, 1),
    "batch 64, greedy": (64, 1),
    "batch 64, beam 5": (64, 5),
}
GROWTH = {"batch 1, greedy": (1, 1), "batch 64, beam 5": (64, 5)}
PRODUCED = (8, 32, 128, 512)  # tokens before the timed one
SOURCE = 15  # tokens of a source in the measurement of growth


def sentences(data: pairs.Prepared, count: int) -> list[tuple[str, list[int]]]:
    """So many validation sources with their tokens, evenly from short to long."""
    assert data.task.source is not None
    texts = [example.source for example in data.examples]
    encoded = sorted((np.asarray(data.task.source.encode(text)).tolist(), text) for text in texts)
    encoded.sort(key=lambda each: len(each[0]))
    middle = encoded[len(encoded) // 20 : -max(len(encoded) // 20, 1)]  # without the shortest and longest 5 %
    places = np.linspace(0, len(middle) - 1, count).round().astype(int)
    return [(middle[place][1], middle[place][0]) for place in places]


def settings(data: pairs.Prepared, rows: int, alone: int) -> dict[str, Any]:
    """The batches of each setting: `rows` sentences in large batches, or `alone` sentences in batches of one."""
    made: dict[str, Any] = {}
    for name, (size, beam_size) in SETTINGS.items():
        found = sentences(data, alone if size == 1 else rows)
        batches = []
        for begin in range(0, len(found), size):
            texts, sources = map(list, zip(*found[begin : begin + size]))
            batches.append({"texts": texts, "sources": sources, "steps": max(map(len, sources))})
        made[name] = {"beam_size": beam_size, "batches": batches}
    return made


def measure(
    model: str, job: Message, rounds: int, installed: dict[str, peers.Installed], before: Path | None
) -> list[dict[str, Any]]:
    """One row per system and setting."""
    shape, rows = SHAPES[model], []
    unit = UNIT if shape["kind"] == "transformer" else "OpenNMT-py"
    with commanding.workers(SYSTEMS, {**job, "shape": shape}, installed, before) as workers:
        for setting in SETTINGS:
            found = measuring.take_turns(workers, rounds, order=setting)
            for name, turns in found.items():
                row: dict[str, Any] = {"model": model, "setting": setting, "system": name}
                if workers[name].reason:
                    rows.append({**row, "failed": workers[name].reason})
                    continue
                row["milliseconds"] = measuring.summary([1000 * turn["seconds"] / turn["sentences"] for turn in turns])
                row["tokens"] = measuring.summary([turn["tokens"] / turn["seconds"] for turn in turns])
                row |= commanding.ratios(found, unit, name)
                row["megabytes"] = round(max(turn["peak"] for turn in turns))
                rows.append(row)
    absent = commanding.missing(SYSTEMS, shape["kind"], installed)
    return rows + [
        {"model": model, "setting": setting, "system": name, "failed": reason}
        for setting in SETTINGS
        for name, reason in absent.items()
    ]


def growth(job: Message, rounds: int, produced: tuple[int, ...], largest: int = 64) -> list[dict[str, Any]]:
    """The cost of a step of the whole batch, after so many tokens."""
    words = {**job, "task": "growth", "shape": SHAPES["transformer"], "source": SOURCE}
    rows: list[dict[str, Any]] = []
    worker = Worker("seqloom", words, threads=job["threads"])
    try:
        for setting, (size, beam_size) in GROWTH.items():
            found = []
            for number in range(1 + rounds):
                answer = worker.turn(f"{min(size, largest)} {beam_size} {' '.join(map(str, produced))}")
                if answer is None:
                    return [*rows, {"setting": setting, "failed": worker.reason}]
                found += [answer["milliseconds"]] if number else []
            for place, count in enumerate(produced):
                cost = measuring.summary([each[place] for each in found])
                ratio = measuring.median([each[place] / each[0] for each in found])
                rows.append({"setting": setting, "produced": count, "milliseconds": cost, "ratio": ratio})
    finally:
        worker.close()
    return rows


def show(result: measuring.Record) -> None:
    for model in dict.fromkeys(each["model"] for each in result["rows"]):
        for setting in SETTINGS:
            title = f"{model}, {setting}, {result['threads']} thread(s)"
            table = Table("", "ms per sentence", "spread", "tokens/s", "ratio", "by processor", "MB", title=title)
            for each in result["rows"]:
                if each["model"] == model and each["setting"] == setting:
                    table.add_row(each["system"], *cells(each))
            Console().print(table)
    table = Table("", "produced", "ms per step", "ratio", title="Seqloom: the cost of one more token")
    for each in result["growth"]:
        if "failed" in each:
            table.add_row(each["setting"], each["failed"])
        else:
            median = each["milliseconds"]["median"]
            table.add_row(each["setting"], str(each["produced"]), f"{median:.2f}", f"{each['ratio']:.2f}")
    Console().print(table)


def cells(row: dict[str, Any]) -> list[str]:
    if "failed" in row:
        return [row["failed"]]
    spent = row["milliseconds"]
    return [
        f"{spent['median']:.2f}",
        f"{spent['lowest']:.2f} to {spent['highest']:.2f}",
        f"{row['tokens']['median']:.0f}",
        f"{row['ratio']:.2f}" if "ratio" in row else "",
        f"{row['processor_ratio']:.2f}" if "processor_ratio" in row else "",
        str(row["megabytes"]),
    ]


def main() -> None:
    parser = commanding.options("decode", "Speed of decoding.")
    parser.add_argument("--models", nargs="+", choices=list(SHAPES), default=list(SHAPES))
    options = parser.parse_args()
    quick = options.quick
    rounds, rows, alone = (1, 4, 2) if quick else (options.rounds, 256, 32)
    installed = peers.install(peers.choose(options.peers))
    data = pairs.prepare(options.quick)
    with tempfile.TemporaryDirectory(prefix="seqloom-bench-") as scratch:
        job = {**data.job(Path(scratch)), "task": "decode", "threads": options.threads}
        job["settings"] = settings(data, rows, alone)
        found = [each for model in options.models for each in measure(model, job, rounds, installed, options.before)]
        marks, largest = ((8, 24), 2) if quick else (PRODUCED, 64)
        grown = growth(job, rounds, marks, largest) if "transformer" in options.models else []
    result = measuring.record(
        "decode",
        options.threads,
        peers=peers.describe(installed),
        data=data.name,
        vocabulary=data.vocabulary,
        rounds=rounds,
        rows=found,
        growth=grown,
    )
    measuring.write(result, commanding.out(options, f"decode-{options.threads}"))
    show(result)


if __name__ == "__main__":
    main()
