"""Figures to trust on a noisy machine: systems take turns, medians have a spread, ratios are taken within a round."""

from __future__ import annotations

import os
import platform
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from bench.pipe import Message, Worker
from seqloom.storage.files import replace_file, to_json

Record = dict[str, Any]
Found = dict[str, list[Message]]  # by name: the results of its turns
ROUNDS = 5


def take_turns(workers: Mapping[str, Worker], rounds: int, warming: int = 1, order: str = "") -> Found:
    """Each worker once per round, so that other load on the machine affects all. Warm-up rounds are not counted.

    Every other round runs backwards, so that no worker always follows the same one.
    """
    found: Found = {name: [] for name in workers}
    for number in range(warming + rounds):
        names = list(workers) if number % 2 == 0 else list(workers)[::-1]
        for name in names:
            answer = workers[name].turn(order)
            if answer is not None and number >= warming:
                found[name].append(answer)
        print(f"round {number + 1} of {warming + rounds}", file=sys.stderr)
    return found


def summary(values: Sequence[float], digits: int = 4) -> dict[str, float]:
    """Median and spread."""
    return {
        "median": significant(statistics.median(values), digits),
        "lowest": significant(min(values), digits),
        "highest": significant(max(values), digits),
    }


def significant(value: float, digits: int = 4) -> float:
    return float(f"{value:.{digits}g}")


def median(values: Sequence[float]) -> float:
    return significant(statistics.median(values), 3)


def record(name: str, threads: int, packages: Iterable[str] = ("torch", "numpy"), **entries: Any) -> Record:
    """A record: the entries, with machine, versions and command."""
    return {
        "name": f"bench-{name}",
        "command": " ".join(["python", "-m", f"bench.{name}", *without_paths(sys.argv[1:])]),
        "machine": machine(),
        "threads": threads,
        "versions": {"python": platform.python_version(), **versions(packages)},
        **entries,
    }


def without_paths(words: Sequence[str]) -> list[str]:
    """The arguments of a command, without options that name paths of this machine."""
    kept: list[str] = []
    for before, word in zip(["", *words], words):
        if not {before, word} & {"--out", "--before"}:
            kept.append(word)
    return kept


def versions(packages: Iterable[str]) -> dict[str, str]:
    """The versions of the packages that are installed."""
    found = {}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def machine() -> dict[str, Any]:
    """The processor, the number of cores, and the load before."""
    model = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    return {"processor": model, "processors": os.cpu_count(), "load": round(os.getloadavg()[0], 2)}


def write(result: Record, out: Path | None) -> None:
    """Write results/bench-NAME.json atomically."""
    if out is None:
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    replace_file(out, to_json(result))
