"""How time and memory grow with corpus, vocabulary, length, batch, beam and width of the model.

    python -m bench.scale [--threads N] [--rounds N] [--pairs N ...] [--quick]

For the corpus, `seqloom train` runs a small model on generated pairs, first with an empty cache and then with the cache
of the first run; all time outside of training is start-up. What checksums take of it is measured on the same cache: to
make an entry, to open it, and to open it when its files are due to be hashed again. For the rest, one Transformer
(`bench.shapes`) makes updates and searches while one size grows and the others stay; the points take turns. An exponent
is the slope of log time per token over log size.
"""

from __future__ import annotations

import json
import math
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from bench import commanding, measuring, pairs
from bench.shapes import BETAS, BOS, CLIP, EOS, LABEL_SMOOTHING, LEARNING_RATE, PAD, TRANSFORMER, UNK
from bench.start import launch
from seqloom.data import checksums
from seqloom.data.cache import Cache
from seqloom.nn.decoders.transformer import Transformer as Decoder
from seqloom.nn.encoders.transformer import Transformer as Encoder
from seqloom.nn.model import Model
from seqloom.objectives.cross_entropy import CrossEntropy
from seqloom.search.beam import BeamSearch
from seqloom.search.constraints.banned import Banned
from seqloom.storage.files import replace_file
from seqloom.types import Batch, Padded

CORPORA = (10_000, 100_000, 1_000_000)  # pairs
STEPS = 40  # updates of a run on a corpus
CHECKS = {"first": ("made",), "later": ("opened", "hashed")}  # by run: see `checking`
SMALL = """
seed = 1
share_embeddings = true
objective = {type = "cross_entropy", label_smoothing = 0.1}
encoder = {type = "transformer", size = 64, layers = 1, heads = 4, hidden = 256}
decoder = {type = "transformer", size = 64, layers = 1, heads = 4, hidden = 256}
[task]
source = {type = "text", units = "word", size = 8000}
target = {type = "text", units = "word", size = 8000}
joint = true
[train]
tokens = 4096
log_every = 10
"""


@dataclass(frozen=True)
class Point:
    """The sizes of a model and its inputs."""

    vocabulary: int = 8000
    length: int = 16  # tokens of a source and of a target
    batch: int = 64  # rows
    beam: int = 5
    width: int = TRANSFORMER["size"]


SWEEPS: dict[str, tuple[int, ...]] = {
    "vocabulary": (1000, 2000, 4000, 8000, 16000, 32000),
    "length": (8, 16, 32, 64, 128),
    "batch": (1, 4, 16, 64, 256),
    "beam": (1, 2, 5, 10, 20),
    "width": (64, 128, 256, 512),
}


# -- the corpus


def corpus_rows(count: int, folder: Path, rounds: int, threads: int) -> list[dict[str, Any]]:
    """The first run, and later ones."""
    data, recipe = folder / f"{count}.tsv", folder / "small.toml"
    with data.open("w", encoding="utf-8") as file:
        file.writelines(f"{source}\t{target}\n" for source, target in pairs.generate(count))
    replace_file(recipe, SMALL.encode())
    cache = {"SEQLOOM_CACHE": str(folder / f"cache-{count}")}
    found = []
    for number in range(1 + rounds):
        out = folder / f"run-{count}-{number}"
        words = [sys.executable, "-m", "seqloom", "train", str(recipe), "--data", str(data), "--out", str(out)]
        answer = launch([*words, "--set", f"train.steps={STEPS}"], "", threads, **cache)
        if answer["failed"]:
            return [{"pairs": count, "failed": answer["failed"]}]
        lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
        trained = [line for line in lines if line["kind"] == "train"]
        answer["starting"] = answer["seconds"] - lines[-1]["seconds"]
        answer["speed"] = float(np.median([line["rate"] for line in trained[1:]]))
        found.append(answer)
    groups = {"first": found[:1], "later": found[1:]}
    checked = checking(folder / f"cache-{count}")
    return [
        {
            "pairs": count,
            "run": name,
            "starting": measuring.summary([each["starting"] for each in group]),
            "speed": measuring.summary([each["speed"] for each in group]),
            "megabytes": round(max(each["peak"] for each in group)),
            "checking": {kind: checked[kind] for kind in CHECKS[name]},
        }
        for name, group in groups.items()
        if group
    ]


def checking(cache: Path) -> dict[str, float]:
    """Seconds to make the checksums of an entry and force it to the disk, to open it, and to hash all of it."""
    (entry,) = Cache(cache).entries()
    key, copy = entry.folder.name, cache.with_name(f"{cache.name}-copy")
    shutil.copytree(entry.folder, copy)
    for name in (checksums.MANIFEST, checksums.VERIFIED):
        (copy / name).unlink(missing_ok=True)
    made, opened = timed(lambda: checksums.finish(copy, key)), timed(lambda: checksums.find_damage(copy, key))
    (copy / checksums.VERIFIED).unlink(missing_ok=True)
    return {"made": made, "opened": opened, "hashed": timed(lambda: checksums.find_damage(copy, key))}


def timed(run: Callable[[], object]) -> float:
    begin = time.perf_counter()
    run()
    return measuring.significant(time.perf_counter() - begin)


# -- everything else


def build(point: Point) -> Model:
    torch.manual_seed(1)
    heads, layers, dropout = (TRANSFORMER[name] for name in ("heads", "layers", "dropout"))
    shape = {"size": point.width, "hidden": 4 * point.width, "heads": heads, "layers": layers, "dropout": dropout}
    encoder = Encoder(vocabulary=point.vocabulary, **shape)
    decoder = Decoder(
        vocabulary=point.vocabulary, memory_size=point.width, bos=BOS, eos=EOS, length_offset=1000, **shape
    )
    return Model(encoder, decoder, share_embeddings=True)


def random_tokens(point: Point) -> Padded:
    values = torch.randint(4, point.vocabulary, (point.batch, point.length))
    return Padded(values, torch.full((point.batch,), point.length))


def training(point: Point) -> Callable[[], float]:
    """Microseconds of an update per target token."""
    model, objective = build(point).train(), CrossEntropy(label_smoothing=LABEL_SMOOTHING)
    optimiser = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE, betas=BETAS, fused=True)
    batch = Batch(random_tokens(point), random_tokens(point), random_tokens(point))

    def update() -> float:
        begin = time.perf_counter()
        optimiser.zero_grad(set_to_none=True)
        loss = objective(model, batch, 0.0)
        (loss.total / loss.count).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimiser.step()
        return 1e6 * (time.perf_counter() - begin) / (point.batch * point.length)

    return update


def decoding(point: Point) -> Callable[[], float]:
    """Microseconds of a search per output token."""
    model, source = build(point).eval(), random_tokens(point)
    search = BeamSearch(beam_size=point.beam, minimum_length=point.length - 1, maximum_length=point.length)

    @torch.no_grad()
    def decode() -> float:
        begin = time.perf_counter()
        search(model.decoder, model.encode(source), None, [Banned([[PAD], [UNK], [BOS]])])
        return 1e6 * (time.perf_counter() - begin) / (point.batch * point.length)

    return decode


def sweep(name: str, values: tuple[int, ...], base: Point, rounds: int) -> dict[str, Any]:
    """Time per token of training and decoding while one size grows, and the exponents."""
    made: dict[str, Any] = {"name": name, "values": list(values), "kinds": {}}
    for kind, make in (("training", training), ("decoding", decoding)):
        if name == "beam" and kind == "training":
            continue
        points = [replace(base, **{name: value}) for value in values]
        if kind == "decoding" and name != "batch":
            points = [replace(point, batch=max(base.batch // 4, 1)) for point in points]
        runs = [make(point) for point in points]
        found: list[list[float]] = [[] for _ in runs]
        for number in range(1 + rounds):
            for place, run in enumerate(runs):
                spent = run()
                if number:
                    found[place].append(spent)
        figures = [measuring.summary(each) for each in found]
        made["kinds"][kind] = {
            "microseconds": figures,
            "exponent": exponent(values, [each["median"] for each in figures]),
        }
        print(f"{name}, {kind}", file=sys.stderr)
    return made


def exponent(sizes: tuple[int, ...], times: list[float]) -> float:
    """b of the best fit a * size^b, in logarithms."""
    slope = np.polyfit(np.log(sizes), np.log(times), 1)[0]
    return round(float(slope), 3) if math.isfinite(slope) else math.nan


# -- the command


def show(result: measuring.Record) -> None:
    table = Table("pairs", "run", "start-up s", "spread", "tokens/s", "MB", "checksums s", title="the corpus")
    for row in result["corpora"]:
        if "failed" in row:
            table.add_row(f"{row['pairs']:,}", row["failed"])
            continue
        spent = row["starting"]
        spread = f"{spent['lowest']:.2f} to {spent['highest']:.2f}"
        speed = f"{row['speed']['median']:.0f}"
        checks = ", ".join(f"{kind} {seconds:.3g}" for kind, seconds in row["checking"].items())
        figures = (f"{spent['median']:.2f}", spread, speed, str(row["megabytes"]), checks)
        table.add_row(f"{row['pairs']:,}", row["run"], *figures)
    Console().print(table)
    for each in result["sweeps"]:
        table = Table(each["name"], *each["kinds"], title=f"microseconds per token against {each['name']}")
        for place, value in enumerate(each["values"]):
            medians = [kind["microseconds"][place]["median"] for kind in each["kinds"].values()]
            table.add_row(f"{value:,}", *(f"{median:.0f}" for median in medians))
        table.add_row("exponent", *(f"{kind['exponent']:.2f}" for kind in each["kinds"].values()))
        Console().print(table)


def main() -> None:
    parser = commanding.options("scale", "How time and memory grow.", with_peers=False)
    parser.add_argument("--pairs", nargs="*", type=int, default=list(CORPORA), help="sizes of the corpora")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    rounds, corpora, base, sweeps = options.rounds, options.pairs, Point(), SWEEPS
    if options.quick:
        rounds, corpora, base = 1, [500] if options.pairs else [], Point(vocabulary=200, length=4, batch=4, width=16)
        sweeps = {"vocabulary": (100, 200), "length": (4, 8), "batch": (1, 4), "beam": (1, 2), "width": (16, 32)}
    with tempfile.TemporaryDirectory(prefix="seqloom-bench-") as scratch:
        rows = [
            each for count in corpora for each in corpus_rows(count, Path(scratch), min(rounds, 3), options.threads)
        ]
    found = [sweep(name, values, base, rounds) for name, values in sweeps.items()]
    result = measuring.record("scale", options.threads, rounds=rounds, corpora=rows, sweeps=found)
    measuring.write(result, commanding.out(options, "scale"))
    show(result)


if __name__ == "__main__":
    main()
