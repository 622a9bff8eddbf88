"""Run folders: everything that a training writes, and all that it needs to be resumed.

    format.json         {"format": 1, "seqloom": "0.1.0"}
    config.toml         the recipe, every default filled in
    model.safetensors   the weights that predictions use: the best, or an average of the best
    metrics.jsonl       one object per line, "kind": "start" (before the first update), "train" or "valid"
    environment.json    what results depend on to the last bit, beside the recipe
    checkpoints/step-00001234/{model.safetensors, optimiser.safetensors, trainer.json, checksums.json}
    .lock               who is writing, as long as somebody is

No file is ever incomplete: files and checkpoint folders are written under a temporary name that begins with a dot,
forced to the disk, and renamed. What a crash leaves under such names is removed when the run is next opened for
writing, which one process at a time may do. No file is a pickle, so a stranger's run is safe to open.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from seqloom.errors import SeqloomError, show
from seqloom.storage import files, weights
from seqloom.storage.checkpoint import CHECKSUMS, Checkpoint, checksum
from seqloom.storage.files import is_exported, read_json, remove, saving, sync, to_json
from seqloom.storage.lock import WriteLock
from seqloom.storage.new_folder import new_folder, refuse_existing
from seqloom.storage.toml import read_toml, write_toml
from seqloom.version import __version__

FORMAT = 1


def is_checkpoint(path: Path) -> bool:
    """Whether this is the folder of a complete checkpoint; links are not followed."""
    return re.fullmatch(r"step-\d{8,}", path.name) is not None and not path.is_symlink()


class Run:
    """The folder of one training."""

    def __init__(self, path: Path | str):
        self.path = Path(path)

    @classmethod
    def create(
        cls,
        path: Path | str,
        recipe: dict[str, Any],
        save_task: Callable[[Path], None] = lambda folder: None,
        lock: WriteLock | None = None,
    ) -> Run:
        """A new run folder, which appears complete with its recipe and what `save_task` writes into it.

        Whoever goes on to write into it gives a lock, which is held afterwards.
        """
        with WriteLock() as own, new_folder(Path(path), lock or own) as partial:
            (partial / "checkpoints").mkdir()
            write_toml(recipe, partial / "config.toml")
            save_task(partial)
            files.write(partial / "format.json", to_json({"format": FORMAT, "seqloom": __version__}))
        return cls(path)

    @staticmethod
    def refuse_existing(path: Path | str) -> None:
        """Refuse a path that is taken: a run is never overwritten."""
        refuse_existing(Path(path))

    @classmethod
    def open(cls, path: Path | str, lock: WriteLock | None = None) -> Run:
        """An existing run folder. To write into it takes a lock; what a crash left behind is then removed."""
        path = Path(path)
        if not (path / "format.json").is_file():
            if path.is_file():
                raise SeqloomError(
                    f"{path} is a file, and a run folder was expected: name the run first; predict reads sources from "
                    f"standard input (< {path}), other commands take a file of pairs with --data {path}"
                )
            reason = "it has no format.json" if path.is_dir() else "there is no such folder"
            if is_exported(path):
                reason = "it is an exported model, for `seqloom predict` and `evaluate` alone"
            raise SeqloomError(f"{path} is not a run folder: {reason}; a run folder is what `seqloom train` writes")
        version = read_json(path / "format.json").get("format")
        if not isinstance(version, int):
            raise SeqloomError(f'{path / "format.json"}: "format" must be a whole number, not {show(version)}')
        if version > FORMAT:
            raise SeqloomError(
                f"{path} has run format {version}, this seqloom ({__version__}) reads up to {FORMAT}: "
                "upgrade seqloom to use it"
            )
        files.refuse_links(path / "checkpoints", path / "metrics.jsonl")
        run = cls(path)
        if lock:
            lock.acquire(path)
            run._clear_leftovers()
        return run

    def recipe(self) -> Any:
        return read_toml(self.path / "config.toml")

    # -- weights and checkpoints

    @property
    def weights(self) -> Path:
        """The file with the weights that predictions use."""
        return self.path / "model.safetensors"

    def publish(self, tensors: Mapping[str, Tensor]) -> None:
        """Make these the weights that predictions use."""
        weights.save_file(tensors, self.weights)

    def withdraw(self) -> None:
        """Leave no weights to predict with: the training failed."""
        self.weights.unlink(missing_ok=True)

    @property
    def _folder(self) -> Path:
        return self.path / "checkpoints"

    def checkpoint(self, step: int) -> Checkpoint:
        return Checkpoint(self._folder / f"step-{step:08d}")

    def checkpoints(self) -> list[Checkpoint]:
        """The complete checkpoints, oldest first."""
        if not self._folder.is_dir():
            return []
        found = [Checkpoint(path) for path in self._folder.iterdir() if is_checkpoint(path)]
        return sorted(found, key=lambda checkpoint: checkpoint.step)

    def newest(self) -> Checkpoint | None:
        return max(self.checkpoints(), key=lambda checkpoint: checkpoint.step, default=None)

    def set_aside_damaged(self) -> list[str]:
        """Rename damaged checkpoints, so that the one before counts; a line for each."""
        damaged = {each: problem for each in self.checkpoints() if (problem := each.damage())}
        if damaged and len(damaged) == len(self.checkpoints()):
            raise SeqloomError(
                f"{self._folder}: no checkpoint is intact ({next(iter(damaged.values()))}); "
                "restore one from a copy of the run, or train again into another --out"
            )
        lines = []
        for checkpoint, problem in damaged.items():
            aside = self._folder / f"damaged-{checkpoint.path.name}"
            remove(aside)
            os.rename(checkpoint.path, aside)
            lines.append(
                f"the checkpoint of step {checkpoint.step} cannot be used and is set aside as {aside.name}: {problem}"
            )
        if damaged:
            sync(self._folder)
        return lines

    def save(
        self, step: int, *, model: Mapping[str, Tensor], optimiser: Mapping[str, Tensor], trainer: Mapping[str, Any]
    ) -> Checkpoint:
        """Write a checkpoint, which appears complete or not at all."""
        checkpoint = self.checkpoint(step)
        partial, replaced = self._folder / f".{checkpoint.path.name}.partial", self._replaced(checkpoint)
        sums: dict[str, str] = {}

        def write(name: str, content: bytes) -> None:
            files.write(partial / name, content)
            sums[name] = checksum(content)

        with saving(checkpoint.path, self._survivor):
            try:
                remove(partial)
                partial.mkdir(parents=True)
                write("model.safetensors", weights.to_bytes(model))
                write("optimiser.safetensors", weights.to_bytes(optimiser))
                write("trainer.json", to_json(dict(trainer)))
                files.write(partial / CHECKSUMS, to_json(sums))
                sync(partial)
            except BaseException:
                remove(partial)
                raise
            if checkpoint.path.exists():  # the same step was saved before its validation
                os.rename(checkpoint.path, replaced)
            os.rename(partial, checkpoint.path)
            sync(self._folder)
            remove(replaced)
        return checkpoint

    def copy(self, path: Path | str, tensors: Mapping[str, Tensor]) -> None:
        """Write another run folder with these weights, without the files that only training needs."""
        ignored = shutil.ignore_patterns("checkpoints", self.weights.name, ".*")
        with WriteLock() as lock, new_folder(Path(path), lock) as partial:
            shutil.copytree(self.path, partial, symlinks=True, ignore=ignored, dirs_exist_ok=True)
            files.write(partial / self.weights.name, weights.to_bytes(tensors))

    def prune(self, keep: Iterable[int]) -> None:
        """Remove all checkpoints but the newest and those of the given steps."""
        kept = {*keep, *(checkpoint.step for checkpoint in self.checkpoints()[-1:])}
        unwanted = [checkpoint.path for checkpoint in self.checkpoints() if checkpoint.step not in kept]
        retired = [self._folder / f".{path.name}.partial" for path in unwanted]
        with saving(self._folder):
            for path, hidden in zip(unwanted, retired, strict=True):
                os.rename(path, hidden)  # a complete name never has incomplete contents
            if retired:
                sync(self._folder)  # not even after a loss of power
            for hidden in retired:
                remove(hidden)

    def _replaced(self, checkpoint: Checkpoint) -> Path:
        return self._folder / f".{checkpoint.path.name}.replaced"

    def _survivor(self) -> str:
        newest = self.newest()
        return f"the checkpoint of step {newest.step} is untouched" if newest else "there is no earlier checkpoint"

    def _clear_leftovers(self) -> None:
        for replaced in self._folder.glob(".step-*.replaced"):
            original = self._folder / replaced.name.removeprefix(".").removesuffix(".replaced")
            if not original.exists():  # the crash came between the two renames
                os.rename(replaced, original)
        for leftover in (*self.path.glob(".*.partial"), *self._folder.glob(".step-*")):
            remove(leftover)

    # -- metrics

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    def log(self, record: Mapping[str, Any]) -> None:
        """Append a line to the metrics. Values that are not finite are written as null, as JSON has no NaN."""
        finite = {
            name: None if isinstance(value, float) and value - value != 0 else value for name, value in record.items()
        }
        with saving(self.metrics, self._survivor), self.metrics.open("ab") as file:
            file.write(json.dumps(finite, ensure_ascii=False).encode() + b"\n")

    def metrics_size(self) -> int:
        """In bytes, forced to the disk, its name too."""
        if not self.metrics.exists():
            return 0
        with saving(self.metrics, self._survivor):
            sync(self.metrics)
            sync(self.path)
        return self.metrics.stat().st_size

    def truncate_metrics(self, size: int) -> None:
        """Remove the lines after a checkpoint: the resumed training writes them again."""
        if self.metrics.exists() and self.metrics.stat().st_size > size:
            with saving(self.metrics, self._survivor):
                os.truncate(self.metrics, size)
