"""From a recipe and data to a trained run."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import nn

from seqloom.compute.device import choose_device
from seqloom.config.automatic import recipe_for
from seqloom.config.build import build_model, build_objective, build_part, build_task
from seqloom.config.check import check_recipe
from seqloom.config.complete import complete, fill, sections
from seqloom.config.recipes import difference, override, read_recipe
from seqloom.config.settings import build_settings
from seqloom.contracts import Head, Task
from seqloom.data import dataset
from seqloom.data.cache import cache_folder
from seqloom.data.lines import is_pipe, paths_of, repeatable
from seqloom.data.readers import examples as read_examples
from seqloom.data.survey import survey
from seqloom.errors import SeqloomError
from seqloom.inference.candidates import best_predictions
from seqloom.inference.system import System
from seqloom.nn.model import Model
from seqloom.objectives.cross_entropy import CrossEntropy
from seqloom.predictor import Predictor
from seqloom.storage.run import Run, load_weights
from seqloom.storage.toml import write_toml
from seqloom.train import processes
from seqloom.train.display import Display
from seqloom.train.trainer import Trainer
from seqloom.types import Batch, Example, Output

Data = Any  # a path, two paths of line-aligned files, or a list of pairs
Recipe = dict[str, Any]
LENGTH_OF_TEXT = 400  # how many tokens a running text is generated for, unless told otherwise
MAY_CHANGE = ("train.epochs", "train.steps", "train.minutes", "train.patience", "train.device", "data")


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
        if resume:
            run = Run.open(out, writing=processes.is_lead())
            if run.newest() is None and run.weights.exists():
                raise SeqloomError(
                    f"{out} has no checkpoint to continue from: start from its weights with --init {out}"
                )
            full = resumed(run, recipe, settings, trust)
            if processes.is_lead():
                write_toml(full, run.path / "config.toml")
            task = build_task(full, trust).load(run.path)
        else:
            chosen, where = chosen_recipe(recipe, rows, settings, trust, display)
            chosen = override(chosen, list(settings))
            full = complete(chosen, where, trust)
            task = build_task(full, trust)
            if "init" in full:
                task.load(initial(full, trust).path)
        processes.check_accumulate(full["train"]["accumulate"])
        check_recipe(full, trust)
        processes.begin(choose_device(full["train"]["device"]))
        prepared = prepare(full, task, rows, valid_rows, fit=not resume and "init" not in full)

    if not resume:
        longest = LENGTH_OF_TEXT if task.running else prepared.report.longest_target + 1
        limit_lengths(full, chosen, prepared.report.length_ratio, longest)
        note_data(full, data, valid)
    torch.manual_seed(full["seed"])
    model = build_model(full, task.source, task.target, trust)
    output = rehearse(model, task.collate(prepared.valid, task.in_order(prepared.valid.lengths, 1)[0]))
    if isinstance(model.decoder, Head):  # which may take targets of one length only
        rehearse(model, task.collate(prepared.train, prepared.train.lengths[:, 1].argmax(0, keepdims=True)))
    if not resume and "init" in full:
        begin_from(initial(full, trust), model, full)
    objective = build_objective(full, task, model.decoder, trust)
    if isinstance(objective, CrossEntropy):
        objective.refuse_unknown(output)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name.startswith(objective.learns))
    for line in prepared.report.lines():
        display.say(line)
    if not resume:
        with processes.lead_first():
            run = Run.create(out, full, task.save) if processes.is_lead() else Run.open(out)
    trainer = Trainer(
        model=model,
        objective=objective,
        train=prepared.train,
        valid=prepared.valid,
        collate=task.collate,
        settings=build_settings(full),
        seed=full["seed"],
        run=run,
        evaluate=evaluation(task, full, prepared.valid_examples, trust, objective.asked),
        display=display,
        higher_is_better=task.higher_is_better,
        plan=task.plan,
        in_order=task.in_order,
        augment=task.augment if task.augments else None,
    )
    summary = trainer.fit()
    return Predictor(System(model.eval(), task, full, run.path, trust), summary)


def chosen_recipe(
    recipe: str | Path | Recipe | None, data: Data, settings: Sequence[str], trust: bool, display: Display
) -> tuple[Recipe, str]:
    """A recipe by name, path or content, that of the run to start from, or one that suits the data; and its origin."""
    if isinstance(recipe, dict):
        return recipe, "recipe"
    if recipe is not None:
        return read_recipe(recipe, trust), str(recipe)
    if data is None:
        raise SeqloomError("nothing to train on: give --data FILE, a recipe, or both")
    given = override({}, list(settings))
    if "init" in given:
        other = Run.open(str(given["init"]))
        where = str(other.path / "config.toml")
        theirs = complete(other.recipe(), where, trust)
        display.say(f"The recipe is that of {other.path}.")
        return without_data(theirs), where
    reading = fill(sections()["data"], given.get("data", {}), "data", trust)
    options = {name: reading[name] for name in ("skip_bad", "max_characters")}
    try:
        choice = recipe_for(survey(read_examples(data, columns=2, **options)))
    except SeqloomError as error:
        if "not 1 column" in str(error):
            raise SeqloomError(
                f"{error}. For a language model name a recipe: text-lstm for a running text, char-lm for single lines"
            ) from None
        raise
    for reason in choice.reasons:
        display.say(reason)
    return override(read_recipe(choice.recipe), choice.settings), choice.recipe


def resumed(run: Run, recipe: str | Path | Recipe | None, settings: Sequence[str], trust: bool) -> Recipe:
    """The recipe of a run, longer or shorter perhaps; any other change would make it another training."""
    where = str(run.path / "config.toml")
    before = complete(run.recipe(), where, trust)
    after = complete(override(before, list(settings)), where, trust)
    if recipe is not None:
        where, given = ("recipe", recipe) if isinstance(recipe, dict) else (str(recipe), read_recipe(recipe, trust))
        given = complete(override(given, list(settings)), where, trust)
        derived = ("decoder.length_ratio", "decoder.length_offset", "init")
        changed = [key for key in difference(before, given) if key not in derived]
        after["train"] = given["train"]
    else:
        changed = difference(before, after)
    refused = [key for key in changed if not key.startswith(MAY_CHANGE)]
    if refused:
        raise SeqloomError(
            f"{run.path} was trained with another recipe ({', '.join(refused[:4])} changed): "
            "resume with the old values, or train anew into another --out"
        )
    return after


@torch.no_grad()
def rehearse(model: nn.Module, batch: Batch) -> Output:
    """One example through the whole model: parts that do not fit say so before anything is written."""
    try:
        output: Output = model(batch)
        return output
    except ValueError as error:
        raise SeqloomError(f"encoder and decoder do not fit: {error}") from error


def prepare(full: Recipe, task: Task, data: Data, valid: Data, fit: bool) -> dataset.Dataset:
    """Read and encode; the lead of several processes first, so that the others find it done."""
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


def limit_lengths(full: Recipe, chosen: Recipe, ratio: float, longest: int) -> None:
    """How long an output may get is a fact of the data, unless the recipe says otherwise."""
    said = chosen["decoder"]
    if "length_ratio" in full["decoder"] and "length_ratio" not in said:
        full["decoder"]["length_ratio"] = round(ratio, 3)
    if ratio == 0 and "length_offset" in full["decoder"] and "length_offset" not in said:
        full["decoder"]["length_offset"] = longest  # a language model has no source to go by


def note_data(full: Recipe, data: Data, valid: Data) -> None:
    """Write down which files a run was trained on, so that it can be resumed without naming them."""
    for name, given in (("train", data), ("valid", valid)):
        paths = paths_of(given)
        if paths and not any(map(is_pipe, paths)):  # what came through a pipe cannot be read again
            absolute = [os.path.abspath(path) for path in paths]  # a run may be resumed from another folder
            full["data"][name] = absolute[0] if len(absolute) == 1 else absolute


def without_data(recipe: Recipe) -> Recipe:
    """The recipe of a run without what its data said: for other data it is found anew."""
    recipe = copy.deepcopy({name: table for name, table in recipe.items() if name not in ("data", "init")})
    for name in ("length_ratio", "length_offset"):
        recipe["decoder"].pop(name, None)
    return recipe


def initial(full: Recipe, trust: bool) -> Run:
    """Fine-tuning: the run to take vocabularies and weights from. Its sides must be written as ours are."""
    run = Run.open(full["init"])
    theirs = complete(run.recipe(), str(run.path / "config.toml"), trust)["task"]
    keys = difference(theirs, full["task"])
    if theirs["type"] != full["task"]["type"]:
        kinds = f'"{theirs["type"]}", not "{full["task"]["type"]}"'
        raise SeqloomError(
            f"init = {run.path}: its task.type is {kinds}; take a run of the same task, or give no recipe"
        )
    if different := [key for key in keys if key.startswith(("source", "target", "joint"))]:
        raise SeqloomError(
            f"init = {run.path}: its recipe has another {', '.join(f'task.{key}' for key in different[:4])}, and its "
            f"weights know its own vocabularies only: set these as in {run.path / 'config.toml'}, or give no recipe"
        )
    return run


def begin_from(run: Run, model: Model, full: Recipe) -> None:
    """Take the weights of a run; an agent takes those of its translator from a run without an agent."""
    translator = getattr(model.decoder, "translator", None)
    if translator is None or run.recipe()["decoder"]["type"] == full["decoder"]["type"]:
        load_weights(model, run.weights)
    else:
        load_weights(Model(model.encoder, translator), run.weights)


def evaluation(
    task: Task, full: Recipe, examples: Sequence[Example], trust: bool, asked: Mapping[str, Any]
) -> Callable[[nn.Module], tuple[dict[str, float], list[tuple[str, str, str]]]] | None:
    """The metrics a validation reports: greedy outputs of a fixed part of the validation set, and one to look at."""
    if task.source is None or not task.metrics:
        return None
    sources, references = task.references(examples)
    count = full["train"]["decode"] or len(sources)
    sources, references = list(islice(sources, count)), list(islice(references, count))
    longest = max(len(task.target.encode(target)) for targets in references for target in targets)
    # A model that has learned nothing yet would go on to the length limit, which may be far.
    kind = "prefix_beam" if full["search"]["type"] == "prefix_beam" else "beam"
    table = {"type": kind, "beam_size": 1, "maximum_length": 2 * longest + 10}
    if kind == "prefix_beam":
        table["symbols_per_state"] = full["search"]["symbols_per_state"]
    greedy = build_part("search", table, "search", trust)

    def evaluate(model: nn.Module) -> tuple[dict[str, float], list[tuple[str, str, str]]]:
        found = best_predictions(System(model.eval(), task, full, trust=trust), sources, search=greedy, **asked)
        predictions = [one.text for one in found]
        sample = (str(sources[0]), str(predictions[0]), str(references[0][0]))
        return task.measure(predictions, references, sources), [sample]

    return evaluate
