"""Run folders as systems."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from seqloom.compute.device import choose_device
from seqloom.config.build import build_model, build_task
from seqloom.config.complete import complete
from seqloom.inference.system import System
from seqloom.storage.run import Run
from seqloom.storage.weights import load_file, skip_initialisation


def load_system(path: Path | str, device: str = "auto", trust: bool = False) -> System:
    """The system in a run folder. Code of its own (`module:Class`) is only run under trust."""
    place = choose_device(device)
    run = Run.open(path)
    recipe = complete(run.recipe(), str(run.path / "config.toml"), trust)
    task = build_task(recipe, trust).load(run.path)
    with skip_initialisation():
        model = build_model(recipe, task.source, task.target, trust)
    load_file(model, run.weights)
    return System(model.to(place).freeze(), task, recipe, run.path, trust)


def as_system(given: Any, device: str = "auto", trust: bool = False) -> System:
    """A system as it is, the one that a predictor holds, or the one in a run folder."""
    if isinstance(given, (str, Path)):
        return load_system(given, device, trust)
    return given if isinstance(given, System) else given.system
