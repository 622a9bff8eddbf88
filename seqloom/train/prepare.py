"""Everything before the first update: recipe, data, model, and a forecast. Nothing is written yet."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from typing import Literal

import torch

from seqloom.compute.device import choose_device
from seqloom.compute.threads import choose_threads
from seqloom.config.build import build_model, build_objective, build_task
from seqloom.config.check import check_recipe
from seqloom.config.complete import complete
from seqloom.config.multi_task import data_by_task, tasks_of
from seqloom.config.recipes import Overrides, as_list, override
from seqloom.contracts import Head, Task
from seqloom.data import dataset
from seqloom.data.cache import cache_folder
from seqloom.data.lines import repeatable
from seqloom.data.readers import reading_options
from seqloom.errors import SeqloomError, show
from seqloom.nn.model import Model
from seqloom.objectives.cross_entropy import CrossEntropy
from seqloom.storage.environment import stored_threads
from seqloom.storage.lock import WriteLock
from seqloom.storage.run import Run
from seqloom.storage.toml import write_toml
from seqloom.storage.weights import load_file
from seqloom.train import processes
from seqloom.train.continuation import resumed_recipe
from seqloom.train.display import Display
from seqloom.train.multi_task import Part, join
from seqloom.train.planning import Planning, Ready
from seqloom.train.recipe import Data, Recipe, add_data, choose_recipe, initial_run, task_names
from seqloom.types import Batch, Output

Resume = bool | Literal["auto"]


def prepare_training(
    data: Data = None,
    recipe: str | Path | Recipe | None = None,
    *,
    out: str | Path,
    valid: Data = None,
    settings: Overrides = (),
    minutes: float | None = None,
    as_written: bool = False,
    resume: Resume = False,
    trust: bool = False,
    display: Display,
    lock: WriteLock | None = None,
) -> Ready:
    """The arguments are those of `fit`. Without a lock, nothing is written into a run that is resumed."""
    began = time.monotonic()
    settings = as_list(settings)
    if minutes is not None:
        settings.append(f"train.minutes={float(minutes)}")
    run = run_to_resume(out, resume, lock if processes.is_lead() else None)
    names = task_names(run, recipe, trust)
    files, valid_files = data_by_task(names, data, "--data"), data_by_task(names, valid, "--valid")
    with ExitStack() as stack:
        rows, valid_rows = (
            {name: stack.enter_context(repeatable(each, cache_folder())) for name, each in given.items()}
            for given in (files, valid_files)
        )
        # 1. The recipe, every default filled in, and its tasks. The codecs of an earlier run are loaded with it.
        if run is not None:
            full = resumed_recipe(run, recipe, settings, as_written, trust)
            if lock and processes.is_lead() and full != run.recipe():
                write_toml(full, run.path / "config.toml")
        else:
            given, origin = choose_recipe(recipe, rows.get(""), settings, trust, display)
            given = override(given, settings)
            planning = Planning(recipe, given, settings, as_written)
            full = planning.fit_vocabulary(complete(given, origin, trust), rows.get(""))
        tasks = {name: build_task(single, trust) for name, single in tasks_of(full).items()}
        if earlier := run if run is not None else initial_run(full, trust) if "init" in full else None:
            for name, task in tasks.items():
                task.load(earlier.path / name)
        if run is None:
            processes.check_accumulate(full["train"]["accumulate"])
        check_recipe(full, trust)
        device = choose_device(full["train"]["device"])
        processes.begin(device, full["train"]["timeout"])
        if device.type == "cpu":  # before anything is computed: sums depend on it to the last bit
            choose_threads(full["train"]["threads"], stored_threads(run.path) if run and run.newest() else 0)

        # 2. The data, read and encoded.
        prepared = {
            name: prepare_data(single, tasks[name], rows[name], valid_rows[name], fit=earlier is None, name=name)
            for name, single in tasks_of(full).items()
        }
    lines = [
        of_task(name, line)
        for name, each in prepared.items()
        for line in [*each.notes, *each.report.lines(), *tasks[name].notes(each.train.lengths)]
    ]
    if run is None:
        for name, each in prepared.items():
            add_data(full, given, name, files[name], valid_files[name], each.report)
        if "" in tasks:
            full, fitted = planning.fit_to_data(full, tasks[""], prepared[""])
            lines += fitted

    # 3. The model and its objective, tried on one example of each task.
    torch.manual_seed(full["seed"])
    parts: dict[str, Part] = {}
    for name, single in tasks_of(full).items():
        model = build_model(single, tasks[name].source, tasks[name].target, trust)
        output = try_examples(model, tasks[name], prepared[name])
        if "init" in full and (run is None or run.newest() is None):
            load_initial_weights(initial_run(full, trust), model, full)
        objective = build_objective(single, tasks[name], model.decoder, trust)
        if isinstance(objective, CrossEntropy):
            objective.refuse_unknown(output)
        parts[name] = Part(tasks[name], prepared[name], model, objective)
    whole = parts[""] if "" in parts else join(full, parts)
    ready = Ready(full, whole.task, whole.data, whole.model, whole.objective, trust, run)
    for key, parameter in ready.model.named_parameters():
        parameter.requires_grad_(key.startswith(ready.objective.trains))
    for line in lines:
        display.say(line)

    # 4. The time that it will take.
    return ready if run is not None else planning.fit_to_time(ready, began, display)


def run_to_resume(out: str | Path, resume: Resume, lock: WriteLock | None) -> Run | None:
    """The run to go on with; None where a new one is to begin."""
    if resume not in (True, False, "auto"):
        raise SeqloomError(f'resume = {show(resume)}: expected True, False or "auto"')
    if not resume or (resume == "auto" and not (Path(out) / "format.json").is_file()):
        Run.refuse_existing(out)
        return None
    run = Run.open(out, lock)
    if processes.is_lead() and run.newest() is None and run.weights.exists():
        raise SeqloomError(f"{out} has no checkpoint to continue from: start from its weights with --init {out}")
    return run


def of_task(name: str, line: str) -> str:
    """A line that is said of one of several tasks."""
    return f"{name}: {line}" if name else line


def prepare_data(full: Recipe, task: Task, data: Data, valid: Data, fit: bool, name: str = "") -> dataset.Dataset:
    """Read and encode; the lead process first, so that the others find the result in the cache."""
    data = full["data"].get("train") if data is None else data
    valid = full["data"].get("valid") if valid is None else valid
    if data is None:
        option = f"--data {name}=FILE" if name else "--data FILE"
        raise SeqloomError(of_task(name, f"no training data: give {option}, or data.train in the recipe"))
    with processes.lead_first():
        return dataset.prepare(
            data,
            valid,
            source=task.given,
            target=task.target,
            joint=task.joint and task.given is not None,
            seed=full["seed"],
            cache=cache_folder(),
            fit=fit,
            running=task.running,
            check=task.check,
            **reading_options(full["data"]),
        )


def try_examples(model: Model, task: Task, data: dataset.Dataset) -> Output:
    """A short example, and for heads the longest: some take targets of one length only."""
    output = try_batch(model, task.collate(data.valid, task.in_order(data.valid.lengths, 1)[0]))
    if isinstance(model.decoder, Head) and not task.running:
        try_batch(model, task.collate(data.train, data.train.lengths[:, 1].argmax(0, keepdims=True)))
    return output


@torch.no_grad()
def try_batch(model: Model, batch: Batch) -> Output:
    """One example through the whole model, to see whether its parts fit."""
    try:
        output: Output = model(batch)
        return output
    except ValueError as error:
        raise SeqloomError(f"encoder and decoder do not fit: {error}") from error


def load_initial_weights(run: Run, model: Model, full: Recipe) -> None:
    """Load the weights of a run; an agent takes those of its translator from a run without an agent."""
    translator = getattr(model.decoder, "translator", None)
    if translator is None or run.recipe()["decoder"]["type"] == full["decoder"]["type"]:
        load_file(model, run.weights)
    else:
        load_file(Model(model.encoder, translator), run.weights)
