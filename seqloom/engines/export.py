"""From a run to a folder that predicts without torch."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from seqloom.contracts import Task
from seqloom.data.layout import KEYS
from seqloom.engines.engine import ENGINES, Manifest
from seqloom.engines.exported import Exported
from seqloom.errors import SeqloomError, nearest
from seqloom.predictor import Predictor
from seqloom.storage import files
from seqloom.storage.files import partial_path, remove, saving, sync, to_json
from seqloom.types import Example


def export(
    run: Path | str,
    to: str,
    out: Path | str | None = None,
    *,
    int8: bool = False,
    data: Sequence[str] | None = None,
    allow: float = 1.0,
    force: bool = False,
    trust: bool = False,
    note: Callable[[str], None] = lambda text: None,
    columns: Sequence[str | int] | None = None,
    header: bool | None = None,
    task: str = "",
) -> Path:
    """Write the folder and return its path. Of a run with several tasks, one is exported.

    With data, or with int8, run and export are measured side by side, by default on the run's validation data. An 8-bit
    export that loses more of the task's first metric than allowed is not written, except with `force`.
    """
    if to not in ENGINES:
        raise SeqloomError(f'--to "{to}": no such engine{nearest(to, ENGINES)}')
    path = Path(out or f"{Path(run)}-{to}{'-int8' * int8}")
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise SeqloomError(f"{path} already exists: choose another --out")
    native = Predictor.load(run, "cpu", trust, task=task)
    chosen = data or (validation(native) if int8 else None)
    if int8 and not (chosen and native.task.metrics) and not force:
        reason = "the run's validation data is not there" if native.task.metrics else "its task has no metrics"
        raise SeqloomError(f"--int8 measures what it loses, but {reason}: give --data, or take it with --force")
    partial = partial_path(path)
    with saving(path):
        remove(partial)
        try:
            manifest = write(native, to, int8, partial)
            if chosen and native.task.metrics:
                note(f"Measuring both on {' and '.join(chosen)}.")
                examples = list(native.examples(chosen, columns=columns, header=header))
                manifest.measured.update(measure(native, Exported.load(partial, trust=trust), examples, chosen))
                refuse_loss(native.task, manifest.measured, allow, force or not int8)
            files.write(partial / "engine.json", to_json(manifest.content()))
            sync(partial)
            os.rename(partial, path)  # over an empty folder too
            sync(path.parent)
        except BaseException:
            remove(partial)
            raise
    return path


def write(native: Predictor, to: str, int8: bool, folder: Path) -> Manifest:
    """Write all files of an exported folder."""
    decoder, recipe = native.model.decoder, native.recipe
    model_folder = folder / "model"
    model_folder.mkdir(parents=True)
    settings: dict[str, Any] = import_module(f"seqloom.engines.export_{to}").export(native.model, model_folder, int8)
    settings |= {"eos": decoder.eos, "length_ratio": decoder.length_ratio, "length_offset": decoder.length_offset}
    native.task.save(folder)
    for file in model_folder.iterdir():
        sync(file)
    manifest = Manifest(
        engine=to,
        settings=settings,
        recipe={
            "task": recipe["task"],
            "search": recipe["search"],
            "data": {name: value for name, value in recipe["data"].items() if name in ("max_characters", *KEYS)},
        },
        files={file.name: file.stat().st_size for file in sorted(model_folder.iterdir())},
        measured={},
    )
    files.write(folder / "engine.json", to_json(manifest.content()))
    return manifest


def validation(native: Predictor) -> list[str] | None:
    """The files a run was validated on, if they are still there."""
    given = native.recipe["data"].get("valid")
    paths = [given] if isinstance(given, str) else list(given or ())
    return paths if paths and all(Path(each).is_file() for each in paths) else None


def measure(native: Predictor, exported: Exported, examples: Sequence[Example], data: Sequence[str]) -> dict[str, Any]:
    """The metrics of both, and the share of outputs that are equal."""
    sources, references = native.task.references(examples)
    ours, theirs = native.predict(sources), exported.predict(sources)
    return {
        "data": list(data),
        "examples": len(sources),
        "run": native.task.measure(ours, references, sources),
        "export": native.task.measure(theirs, references, sources),
        "identical": sum(one == other for one, other in zip(ours, theirs)) / len(sources),
    }


def refuse_loss(task: Task, measured: dict[str, Any], allow: float, force: bool) -> None:
    """Fail if the first metric has become too bad."""
    name = task.metrics[0]
    before, after = measured["run"][name], measured["export"][name]
    loss = before - after if task.higher_is_better(name) else after - before
    if loss > allow and not force:
        raise SeqloomError(
            f"in 8 bits {name} is {after:.2f}, not {before:.2f}, and a loss of {allow:g} is allowed: leave --int8 out, "
            "raise --allow, or take it with --force"
        )
