"""Bounds on the figures of the records. A gate that was not met is printed as such."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from bench.measuring import Record

SEQLOOM, BARE, CACHED = "Seqloom", "bare loop", "bare loop with a cache"


@dataclass(frozen=True)
class Gate:
    """A figure, its bound and the measured value."""

    text: str
    sign: Literal[">=", "<="]
    bound: float
    value: float

    @property
    def met(self) -> bool:
        return self.value >= self.bound if self.sign == ">=" else self.value <= self.bound

    def line(self) -> str:
        return f"{self.text} {self.sign} {self.bound:g}: {'met' if self.met else '**not met**'} ({self.value:.3g})"


def rows_by_system(rows: list[dict[str, Any]], **keys: Any) -> dict[str, dict[str, Any]]:
    """The rows with these entries that did not fail, by system."""
    return {
        row["system"]: row
        for row in rows
        if "failed" not in row and all(row.get(name) == value for name, value in keys.items())
    }


def training_gates(record: Record) -> list[Gate]:
    gates = [Gate("share of padding in the batches", "<=", 0.05, record["padding"])]
    for model in dict.fromkeys(row["model"] for row in record["rows"]):
        rows = rows_by_system(record["rows"], model=model)
        if SEQLOOM not in rows or BARE not in rows:
            continue
        ours, recurrent = rows[SEQLOOM], model != "transformer"
        gates.append(
            Gate(f"{model}: speed, relative to the bare loop", ">=", 1.0 if recurrent else 1.15, ours["ratio"])
        )
        if "eole" in rows:
            gates.append(Gate(f"{model}: speed, relative to eole", ">=", 1.0, ours["ratio"] / rows["eole"]["ratio"]))
        others = [row["megabytes"] for name, row in rows.items() if not name.startswith(SEQLOOM)]
        gates.append(
            Gate(f"{model}: memory, relative to the lowest of the others", "<=", 1.0, ours["megabytes"] / min(others))
        )
    return gates


def decoding_gates(record: Record) -> list[Gate]:
    """Our time relative to theirs, or our speed relative to theirs."""
    gates = []
    shares = {"batch 1, greedy": 0.8, "batch 64, greedy": 1.0, "batch 64, beam 5": 0.9}
    for setting, share in shares.items():
        rows = rows_by_system(record["rows"], model="transformer", setting=setting)
        if SEQLOOM in rows and CACHED in rows:
            ours = rows[SEQLOOM]["ratio"]
            gates.append(Gate(f"{setting}: time, relative to the bare loop", "<=", share, 1 / ours))
            marian = rows.get("HF transformers (Marian)")
            if marian:
                bound = 2.0 if setting == "batch 1, greedy" else 1.3
                gates.append(Gate(f"{setting}: speed, relative to HF generate", ">=", bound, ours / marian["ratio"]))
        for model in ("lstm", "lstm-input-feeding"):
            rows = rows_by_system(record["rows"], model=model, setting=setting)
            if SEQLOOM in rows and "OpenNMT-py" in rows:
                gates.append(
                    Gate(f"{model}, {setting}: speed, relative to OpenNMT-py", ">=", 2.0, rows[SEQLOOM]["ratio"])
                )
    for setting, bound in (("batch 1, greedy", 1.5), ("batch 64, beam 5", 3.0)):
        ratios = {
            row["produced"]: row["ratio"] for row in record["growth"] if row["setting"] == setting and "produced" in row
        }
        if 512 in ratios:
            gates.append(Gate(f"{setting}: a step after 512 tokens, relative to one after 8", "<=", bound, ratios[512]))
    return gates


def starting_gates(record: Record) -> list[Gate]:
    rows = {row["command"]: row for row in record["rows"] if "failed" not in row}
    gates = []
    for name, row in rows.items():
        seconds = row["seconds"]["median"]
        if name == "seqloom --help":
            gates.append(Gate(f"{name}: seconds", "<=", 0.2, seconds))
        elif "exported" in name:
            gates.append(Gate(f"{name}: seconds", "<=", 0.5, seconds))
            gates.append(Gate(f"{name}: MB", "<=", 120, row["megabytes"]))
        elif name.startswith("predict"):
            gates.append(Gate(f"{name}: seconds beyond import torch", "<=", 0.5, row["over_torch"]))
    return gates


def scaling_gates(record: Record) -> list[Gate]:
    """The largest corpus relative to the smallest, in runs that find their cache."""
    rows = sorted((row for row in record["corpora"] if row.get("run") == "later"), key=lambda row: int(row["pairs"]))
    if len(rows) < 2:
        return []
    first, last = rows[0], rows[-1]
    growth = f"{last['pairs']:,} pairs, relative to {first['pairs']:,}"
    return [
        Gate(f"start-up of a later run, {growth}", "<=", 1.5, last["starting"]["median"] / first["starting"]["median"]),
        Gate(f"memory, {growth}", "<=", 1.2, last["megabytes"] / first["megabytes"]),
        Gate(f"speed, {growth}", ">=", 0.9, last["speed"]["median"] / first["speed"]["median"]),
        *checksum_gates(last),
    ]


def checksum_gates(row: dict[str, Any]) -> list[Gate]:
    """What checksums of the cache may take of a later start."""
    spent = row.get("checking", {}).get("opened")
    share = f"checksums of the cache, {row['pairs']:,} pairs, share of a later start-up"
    return [] if spent is None else [Gate(share, "<=", 0.02, spent / row["starting"]["median"])]


def lattice_gates(record: Record) -> list[Gate]:
    return [
        Gate("time, relative to autograd", "<=", 0.6, record["systems"]["ours"]["ratio"]),
        Gate("gradients in float64, largest difference from autograd", "<=", 1e-10, record["difference"]),
    ]


def pointer_gates(record: Record) -> list[Gate]:
    """Pointing may cost no more than the recurrence: half of its speed."""
    return [Gate("speed, relative to the recurrence alone", ">=", 0.5, record["systems"]["pointer network"]["ratio"])]


def expert_gates(record: Record) -> list[Gate]:
    """A mixture of experts may take twice the time of a feed-forward layer of as many operations."""
    return [
        Gate(f"time, relative to a feed-forward layer, experts of {hidden}", "<=", 2, found["experts"]["ratio"])
        for hidden, found in record["hidden"].items()
    ]


BOUNDS = {  # 1 unless others are given, by what a setting begins with
    "bench-pixels": {"training": 0.9, "drawing": 50.0},  # the loop for drawing passes over the picture for each pixel
    "bench-bert": {"pre-training": 1.2},
}
OTHERS = {"bench-bert": "transformers"}


def bare_loop_gates(record: Record) -> list[Gate]:
    """At least as fast as the bare loop, or another system."""
    bounds, other = BOUNDS.get(record["name"], {}), OTHERS.get(record["name"], "the bare loop")
    return [
        Gate(
            f"speed, relative to {other}, {setting}",
            ">=",
            next((bound for name, bound in bounds.items() if setting.startswith(name)), 1.0),
            systems["Seqloom"]["ratio"],
        )
        for setting, systems in record["settings"].items()
    ]


def wave_gates(record: Record) -> list[Gate]:
    return [Gate("time per sample in the last quarter, relative to the first", "<=", 1.1, record["growth"])]


def stream_gates(record: Record) -> list[Gate]:
    return [
        Gate(
            "time for a minute of the last quarter, relative to a fresh stream", "<=", 1.1, record["growth"]["seconds"]
        ),
        Gate(
            "memory in the last quarter, relative to that after two minutes", "<=", 1.05, record["growth"]["megabytes"]
        ),
    ]
