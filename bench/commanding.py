"""What the commands share: options, workers and rows."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench import measuring, peers
from bench.pipe import Message, Worker


@dataclass(frozen=True)
class System:
    """One row of a table: its worker, its environment, and further entries of the job."""

    module: str
    peer: str = ""
    words: Message = field(default_factory=dict)
    kinds: tuple[str, ...] = ("transformer", "lstm")


def options(name: str, about: str, with_peers: bool = True) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"python -m bench.{name}", description=about)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=measuring.ROUNDS)
    parser.add_argument("--quick", action="store_true", help="a small run of a few seconds, not recorded")
    parser.add_argument("--out", type=Path, help=f"default: results/bench-{name}.json")
    if with_peers:
        peers.add_option(parser)
        add_before(parser)
    return parser


def add_before(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--before", type=Path, help="a checkout of earlier code to compare with")


@contextmanager
def workers(
    systems: Mapping[str, System],
    job: Message,
    installed: Mapping[str, peers.Installed],
    before: Path | None = None,
) -> Iterator[dict[str, Worker]]:
    """One worker per system that is installed and can build this kind of model."""
    made: dict[str, Worker] = {}
    try:
        for name, system in systems.items():
            if job["shape"]["kind"] not in system.kinds or (system.peer and system.peer not in installed):
                continue
            if system.peer and installed[system.peer].reason:
                continue
            words = {**job, **system.words}
            ours = {"python": installed[system.peer].python} if system.peer else {}
            made[name] = Worker(system.module, words, threads=job["threads"], **ours)
            if before and system.module == "seqloom":
                made[f"{name}, before"] = Worker(system.module, words, threads=job["threads"], home=before)
        yield made
    finally:
        for worker in made.values():
            worker.close()


def missing(systems: Mapping[str, System], kind: str, installed: Mapping[str, peers.Installed]) -> dict[str, str]:
    """Systems whose peer is not installed, with the reason."""
    return {
        name: installed[system.peer].reason
        for name, system in systems.items()
        if system.peer in installed and installed[system.peer].reason and kind in system.kinds
    }


def ratios(found: measuring.Found, unit: str, name: str) -> dict[str, Any]:
    """Speed relative to the unit in the same rounds, by wall time and by processor time; above 1 is faster."""
    if not found.get(unit) or len(found[unit]) != len(found[name]):
        return {}
    pairs = list(zip(found[unit], found[name]))
    return {
        "ratio": measuring.median([theirs["seconds"] / ours["seconds"] for theirs, ours in pairs]),
        "processor_ratio": measuring.median([theirs["processor"] / ours["processor"] for theirs, ours in pairs]),
    }


def out(options: argparse.Namespace, name: str) -> Path | None:
    """The file to write; None for a quick run."""
    if options.out or options.quick:
        return options.out
    return Path("results") / f"bench-{name}.json"
