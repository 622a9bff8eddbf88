"""Run folders as systems."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from seqloom.compute.device import choose_device
from seqloom.config.build import build_model, build_task, join_models
from seqloom.config.complete import complete
from seqloom.config.multi_task import choose_task, tasks_of
from seqloom.inference.system import System
from seqloom.storage.run import Run
from seqloom.storage.weights import load_file, skip_initialisation


def load_systems(path: Path | str, device: str = "auto", trust: bool = False) -> dict[str, System]:
    """The systems in a run folder, by task; the only one has the name "". Code of its own is only run under trust."""
    place = choose_device(device)
    run = Run.open(path)
    recipe = complete(run.recipe(), str(run.path / "config.toml"), trust)
    recipes = tasks_of(recipe)
    tasks = {name: build_task(single, trust).load(run.path / name) for name, single in recipes.items()}
    with skip_initialisation():
        models = {
            name: build_model(one, tasks[name].source, tasks[name].target, trust) for name, one in recipes.items()
        }
        whole = models[""] if "" in models else join_models(models)
    load_file(whole, run.weights)
    whole.to(place).freeze()
    return {name: System(models[name], tasks[name], one, run.path, trust) for name, one in recipes.items()}


def load_system(path: Path | str, device: str = "auto", trust: bool = False, task: str = "") -> System:
    """The system of one task, which is named where there are several."""
    found = load_systems(path, device, trust)
    return found[choose_task(found, task, str(path))]


def as_system(given: Any, device: str = "auto", trust: bool = False) -> System:
    """A system as it is, the one that a predictor holds, or the one in a run folder."""
    if isinstance(given, (str, Path)):
        return load_system(given, device, trust)
    return given if isinstance(given, System) else given.system
