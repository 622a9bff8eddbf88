"""What the benchmarks have in common as commands: their options, their workers, their rows."""

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
    """One line of a table: which worker, in whose environment, and what it is told beside the job."""

    module: str
    peer: str = ""
    words: Message = field(default_factory=dict)
    kinds: tuple[str, ...] = ("transformer", "lstm")


def options(name: str, about: str, with_peers: bool = True) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"python -m bench.{name}", description=about)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=measuring.ROUNDS)
    parser.add_argument("--quick", action="store_true", help="a few seconds' work, to see that it works; not recorded")
    parser.add_argument("--out", type=Path, help=f"results/bench-{name}.json unless told")
    if with_peers:
        peers.add_option(parser)
        parser.add_argument("--before", type=Path, help="a checkout of an earlier Seqloom, to compare with")
    return parser


@contextmanager
def workers(
    systems: Mapping[str, System],
    job: Message,
    installed: Mapping[str, peers.Installed],
    before: Path | None = None,
) -> Iterator[dict[str, Worker]]:
    """A worker for each system that can build this kind of model and is installed."""
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
                made[f"{name}, before"] = Worker(system.module, words, threads=job["threads"], checkout=before)
        yield made
    finally:
        for worker in made.values():
            worker.close()


def missing(systems: Mapping[str, System], kind: str, installed: Mapping[str, peers.Installed]) -> dict[str, str]:
    """Systems whose peer is not there, and why."""
    return {
        name: installed[system.peer].reason
        for name, system in systems.items()
        if system.peer in installed and installed[system.peer].reason and kind in system.kinds
    }


def ratios(found: measuring.Found, unit: str, name: str) -> dict[str, Any]:
    """To the unit in the same rounds, by the clock and by processor time; above 1 is faster."""
    if not found.get(unit) or len(found[unit]) != len(found[name]):
        return {}
    pairs = list(zip(found[unit], found[name]))
    return {
        "ratio": measuring.middle([theirs["seconds"] / ours["seconds"] for theirs, ours in pairs]),
        "processor_ratio": measuring.middle([theirs["processor"] / ours["processor"] for theirs, ours in pairs]),
    }


def out(options: argparse.Namespace, name: str) -> Path | None:
    """Where to write, or None for a quick look."""
    if options.out or options.quick:
        return options.out
    return Path("results") / f"bench-{name}.json"
