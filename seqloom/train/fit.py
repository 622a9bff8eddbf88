"""From a recipe and data to a trained run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from seqloom.compute.device import choose_device
from seqloom.config.build import build_model, build_objective, build_task
from seqloom.config.check import check_recipe
from seqloom.config.complete import complete
from seqloom.config.recipes import override
from seqloom.config.settings import build_settings
from seqloom.contracts import Head, Task
from seqloom.data import dataset
from seqloom.data.cache import cache_folder
from seqloom.data.lines import repeatable
from seqloom.errors import SeqloomError
from seqloom.inference.system import System
from seqloom.nn.model import Model
from seqloom.objectives.cross_entropy import CrossEntropy
from seqloom.predictor import Predictor
from seqloom.storage.run import Run
from seqloom.storage.toml import write_toml
from seqloom.storage.weights import load_file
from seqloom.train import processes
from seqloom.train.display import Display
from seqloom.train.recipe import Data, Recipe, add_data, choose_recipe, initial_run, resumed_recipe
from seqloom.train.trainer import Trainer
from seqloom.train.validation import greedy_evaluation
from seqloom.types import Batch, Output


def fit(
    data: Data = None,
    recipe: str | Path | Recipe | None = None,
    *,
    out: str | Path,
    valid: Data = None,
    settings: Sequence[str] = (),
    resume: bool = False,
    trust: bool = False,
    display: Display | None = None,
) -> Predictor:
    """Train on pairs: one call from data to model.

    Without a recipe one is chosen from the data. `settings` are "key=value" as on the command line. The same call
    with `resume=True` continues a run that was interrupted.
    """
    display = display or (Display() if processes.is_lead() else Display.quiet())
    if not resume:
        Run.refuse_existing(out)
    with repeatable(data, cache_folder()) as rows, repeatable(valid, cache_folder()) as valid_rows:
        # 1. The recipe, every default filled in, and its task. The codecs of an earlier run are loaded with it.
        if resume:
            run = open_to_resume(out)
            full = resumed_recipe(run, recipe, settings, trust)
            if processes.is_lead():
                write_toml(full, run.path / "config.toml")
            task = build_task(full, trust).load(run.path)
        else:
            given, origin = choose_recipe(recipe, rows, settings, trust, display)
            given = override(given, list(settings))
            full = complete(given, origin, trust)
            task = build_task(full, trust)
            if "init" in full:
                task.load(initial_run(full, trust).path)
        processes.check_accumulate(full["train"]["accumulate"])
        check_recipe(full, trust)
        processes.begin(choose_device(full["train"]["device"]))

        # 2. The data, read and encoded.
        prepared = prepare_data(full, task, rows, valid_rows, fit=not resume and "init" not in full)
    if not resume:
        add_data(full, given, data, valid, prepared.report)

    # 3. The model and its objective, tried on one example before anything is written.
    torch.manual_seed(full["seed"])
    model = build_model(full, task.source, task.target, trust)
    output = try_batch(model, task.collate(prepared.valid, task.in_order(prepared.valid.lengths, 1)[0]))
    if isinstance(model.decoder, Head):  # some heads take targets of one length only
        try_batch(model, task.collate(prepared.train, prepared.train.lengths[:, 1].argmax(0, keepdims=True)))
    if not resume and "init" in full:
        load_initial_weights(initial_run(full, trust), model, full)
    objective = build_objective(full, task, model.decoder, trust)
    if isinstance(objective, CrossEntropy):
        objective.refuse_unknown(output)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name.startswith(objective.trains))
    for line in prepared.report.lines():
        display.say(line)

    # 4. The run folder, which the lead process makes and the others open.
    if not resume:
        with processes.lead_first():
            run = Run.create(out, full, task.save) if processes.is_lead() else Run.open(out)

    # 5. The training.
    trainer = Trainer(
        model=model,
        objective=objective,
        train=prepared.train,
        valid=prepared.valid,
        collate=task.collate,
        plan=task.plan,
        in_order=task.in_order,
        augment=task.augment if task.augments else None,
        settings=build_settings(full),
        seed=full["seed"],
        run=run,
        evaluate=greedy_evaluation(task, full, prepared.valid_examples, trust, objective.predict_options),
        higher_is_better=task.higher_is_better,
        display=display,
    )
    summary = trainer.fit()
    return Predictor(System(model, task, full, run.path, trust), summary)


def open_to_resume(out: str | Path) -> Run:
    run = Run.open(out, writing=processes.is_lead())
    if run.newest() is None and run.weights.exists():
        raise SeqloomError(f"{out} has no checkpoint to continue from: start from its weights with --init {out}")
    return run


def prepare_data(full: Recipe, task: Task, data: Data, valid: Data, fit: bool) -> dataset.Dataset:
    """Read and encode; the lead process first, so that the others find the result in the cache."""
    data = full["data"].get("train") if data is None else data
    valid = full["data"].get("valid") if valid is None else valid
    if data is None:
        raise SeqloomError("no training data: give --data FILE, or data.train in the recipe")
    with processes.lead_first():
        return dataset.prepare(
            data,
            valid,
            source=task.source,
            target=task.target,
            joint=task.joint,
            seed=full["seed"],
            cache=cache_folder(),
            skip_bad=full["data"]["skip_bad"],
            max_characters=full["data"]["max_characters"],
            fit=fit,
            running=task.running,
            check=task.check,
        )


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
