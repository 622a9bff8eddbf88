"""Commands to try next, as they can be pasted into a shell."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seqloom.data.layout import PLAIN, Layout
from seqloom.storage.run import Run

EPOCHS = 20  # of a recipe without any limit
BEAM = 5  # hypotheses of a beam, where the run searches greedily
MORE_DROPOUT, MOST_DROPOUT = 0.1, 0.5  # what is added to a rate, and the highest to suggest


@dataclass(frozen=True)
class Commands:
    """For one run, and the data that it was diagnosed on, if these were given as files."""

    path: Path
    recipe: dict[str, Any]
    data: Sequence[str] = ()
    layout: Layout = PLAIN  # of these files

    def again(self, suffix: str, *settings: str) -> str:
        """Train from the start with some settings changed."""
        recorded = self.recipe.get("data", {}).get("train")
        data = [] if recorded else ["--data", "FILE"]
        changes = [word for setting in settings for word in ("--set", setting)]
        return join("train", self.path / "config.toml", *data, *changes, "--out", f"{self.path}-{suffix}")

    def longer(self) -> str:
        """Train on, for as long again: from the last checkpoint if there is one."""
        train = self.recipe.get("train", {})
        limits = {key: train[key] for key in ("epochs", "steps") if train.get(key)} or {"epochs": EPOCHS}
        settings = [f"train.{key}={2 * value:g}" for key, value in limits.items()]
        if train.get("minutes"):  # these were turned into steps
            settings = [f"train.minutes={2 * train['minutes']:g}"]
        if Run(self.path).newest() is None or not self.recipe.get("data", {}).get("train"):
            return self.again("longer", *settings, *(["train.steps=none"] if train.get("minutes") else []))
        changes = [word for setting in settings for word in ("--set", setting)]
        return join("train", "--resume", "--out", self.path, *changes)

    def more_dropout(self) -> str:
        """Train again with more drop-out, or where there is none to set, with weight decay."""
        settings = [f"{key}={min(MOST_DROPOUT, rate + MORE_DROPOUT):.2g}" for key, rate in self.dropouts()]
        return self.again("dropout", *settings) if settings else self.again("decay", "train.weight_decay=0.01")

    def label_smoothing(self) -> str:
        """Train again with smoothed targets; objectives that have none are trained with weight decay."""
        smooth = self.recipe.get("objective", {}).get("type", "cross_entropy") == "cross_entropy"
        return self.again("smooth", "objective.label_smoothing=0.1" if smooth else "train.weight_decay=0.01")

    def dropouts(self) -> Iterator[tuple[str, float]]:
        """The drop-out rates of the recipe, by key."""
        tables = [(name, self.recipe.get(name, {})) for name in ("encoder", "decoder")]
        while tables:
            key, table = tables.pop(0)
            if isinstance(rate := table.get("dropout"), (int, float)):
                yield f"{key}.dropout", float(rate)
            tables += [(f"{key}.{name}", each) for name, each in table.items() if isinstance(each, dict)]

    def byte_pairs(self) -> str:
        """Train again on byte pairs, which have no unknown words."""
        texts = [side for side in ("source", "target") if self.recipe["task"].get(side, {}).get("type") == "text"]
        return self.again("pieces", *(f"task.{side}.units=bpe" for side in texts))

    def other_recipe(self, name: str) -> str:
        """Train another recipe on the same data."""
        recorded = self.recipe.get("data", {}).get("train") or "FILE"
        files = [recorded] if isinstance(recorded, str) else recorded
        data = [word for file in files for word in ("--data", short_path(file))]
        data += Layout.of(self.recipe.get("data", {})).typed()
        return join("train", name, *data, "--out", f"{self.path}-{name}")

    def diagnose(self, *options: str) -> str:
        """Diagnose the same data with another search."""
        data = [word for file in self.data for word in ("--data", file)] + self.layout.typed()
        return join("diagnose", self.path, *data, *options)

    def search(self, *settings: str) -> str:
        """Diagnose with other settings of a beam search; for any other search, train longer."""
        search = self.recipe.get("search", {})
        if search.get("type") != "beam":
            return self.longer()
        wider = [f"beam_size={BEAM}"] if search.get("beam_size", BEAM) < 2 else []  # greedy search compares no lengths
        return self.diagnose(*(word for setting in (*wider, *settings) for word in ("--set", setting)))


def short_path(path: str) -> str:
    """The path from the working folder, if the file is in it: runs record whole paths."""
    return path.removeprefix(f"{os.getcwd()}{os.sep}")


def join(*words: object) -> str:
    return shlex.join(["seqloom", *map(str, words)])
