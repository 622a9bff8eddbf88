"""A tiny training to attack, and how it ends when nobody does."""

from __future__ import annotations

import json
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from tests.faults.command import Finished, seqloom

RECIPE = """
[task]
metrics = ["exact"]
source = {type = "text", units = "char"}
target = {type = "text", units = "char"}
[encoder]
type = "recurrent"
size = 8
embedding_size = 8
[decoder]
type = "recurrent"
size = 8
embedding_size = 8
[train]
tokens = 128
accumulate = 2
steps = 12
validate_every = 4
checkpoint_every = 3
average = 2
keep = 2
log_every = 1
optimiser = "sgd"
learning_rate = 0.3
device = "cpu"
timeout = 0.05
"""
ONE_LINE = (0, 2)
ENDED = (0, 130, 143, -2, -9, -15)


class Training:
    """A folder with a recipe, pairs, and a run; faults are planned for one command at a time."""

    def __init__(self, folder: Path):
        self.folder, self.root, self.run = folder, folder / "work", folder / "work" / "run"
        self.root.mkdir()
        (folder / "recipe.toml").write_text(RECIPE)
        pairs = [(str(number), str(number)[::-1]) for number in range(100, 160)]
        (folder / "pairs.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in pairs))
        self.shim = folder / "shim"
        self.shim.mkdir()
        shutil.copy(Path(__file__).parent / "shim.py", self.shim / "sitecustomize.py")

    @property
    def words(self) -> list[str]:
        return ["train", "../recipe.toml", "--data", "../pairs.tsv", "--out", "run", "--resume=auto"]

    def train(self, *more: str, **plan: Any) -> Finished:
        """`seqloom train`, with the faults of a plan."""
        path = f"{self.shim}:{Path.cwd()}" if plan else str(Path.cwd())
        (self.shim / "plan.json").write_text(json.dumps({"root": str(self.root.resolve()), "at": 0, **plan}))
        return seqloom(*self.words, *more, folder=self.root, environment={"PYTHONPATH": path}, seconds=60)

    def outcome(self) -> dict[str, Any]:
        """All that two trainings must have in common."""
        lines = [json.loads(line) for line in (self.run / "metrics.jsonl").read_text().splitlines()]
        metrics = [{name: each for name, each in line.items() if name not in ("seconds", "rate")} for line in lines]
        checkpoints = sorted((self.run / "checkpoints").iterdir())
        found: dict[str, Any] = {"metrics": metrics, "weights": (self.run / "model.safetensors").read_bytes()}
        found["recipe"] = (self.run / "config.toml").read_text().replace(str(self.folder.resolve()), "")
        for checkpoint in checkpoints:
            for name in ("model.safetensors", "optimiser.safetensors"):
                found[f"{checkpoint.name}/{name}"] = (checkpoint / name).read_bytes()
        return found

    def difference(self) -> str | None:
        """Where the outcome differs from that of an undisturbed training."""
        ours, theirs = self.outcome(), reference().outcome()
        different = [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]
        leftovers = [path.name for path in self.root.rglob(".*.partial*")]
        if different:
            return f"differs from an undisturbed training in {', '.join(different)}"
        return f"left over: {', '.join(leftovers)}" if leftovers else None

    def finish(self) -> str | None:
        """Resume to the end: what is wrong with that, or with the outcome."""
        last = self.train()
        return last.problem((0,)) or self.difference()


class Reference(Training):
    """An undisturbed training, with the number of its calls and its seconds."""

    def __init__(self) -> None:
        self.place = tempfile.TemporaryDirectory(prefix="seqloom-")
        super().__init__(Path(self.place.name))
        done = self.train(kind="count")
        if problem := done.problem((0,)):
            raise RuntimeError(f"an undisturbed training fails: {problem}: {done.err}")
        self.seconds = done.seconds
        self.calls = int((self.shim / "count.json").read_text())


@cache
def reference() -> Reference:
    return Reference()


def share(number: int) -> float:
    """Numbers in [0, 1), spread evenly however many there are: multiples of the golden ratio."""
    return (0.3 + 0.6180339887 * number) % 1
