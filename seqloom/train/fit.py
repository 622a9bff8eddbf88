"""From a recipe and data to a trained run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from seqloom.config.multi_task import tasks_of
from seqloom.config.recipes import Overrides, as_list
from seqloom.config.settings import build_settings
from seqloom.contracts import Task
from seqloom.data.layout import settings_of
from seqloom.inference.system import System
from seqloom.nn.model import Model
from seqloom.nn.multi_task import MultiTask
from seqloom.predictor import Predictor
from seqloom.storage.lock import WriteLock
from seqloom.storage.run import Run
from seqloom.train import processes
from seqloom.train.display import Display
from seqloom.train.divergence import guess_loss
from seqloom.train.evaluation import greedy_evaluation
from seqloom.train.multi_task import Tasks
from seqloom.train.prepare import Resume, prepare_training
from seqloom.train.recipe import Data, Recipe
from seqloom.train.trainer import Trainer


def fit(
    data: Data = None,
    recipe: str | Path | Recipe | None = None,
    *,
    out: str | Path,
    valid: Data = None,
    columns: Sequence[str | int] | None = None,
    header: bool | None = None,
    settings: Overrides = (),
    minutes: float | None = None,
    as_written: bool = False,
    resume: Resume = False,
    trust: bool = False,
    display: Display | None = None,
) -> Predictor:
    """Train on pairs: one call from data to model.

    Data is a file, two aligned files, pairs, or a table such as a data frame, of which `columns` names source and
    target; `header` says whether line 1 of a file names them. For a recipe of several tasks it is a dictionary of
    these by task, {"letters": "words.tsv"}. Without a recipe one is chosen from the data; a packaged
    recipe is fitted to the data unless it is to be taken `as_written`. `settings` change keys of the recipe:
    {"train.tokens": 2048}, nested as in a recipe, or "key=value" as on the command line. `minutes` limit the whole
    call. The same call with `resume=True` continues a run that was interrupted, with `resume="auto"` also one that
    has not begun.
    """
    if chosen := settings_of(columns, header):
        settings = [*as_list(settings), *chosen]
    display = display or (Display() if processes.is_lead() else Display.quiet())
    with WriteLock(display.say) as lock:
        ready = prepare_training(
            data,
            recipe,
            out=out,
            valid=valid,
            settings=settings,
            minutes=minutes,
            as_written=as_written,
            resume=resume,
            trust=trust,
            display=display,
            lock=lock,
        )
        full, task, run = ready.recipe, ready.task, ready.run
        if run is None:  # the lead process makes the run folder, the others open it
            with processes.lead_first():
                run = Run.create(out, full, task.save, lock) if processes.is_lead() else Run.open(out)
        trainer = Trainer(
            model=ready.model,
            objective=ready.objective,
            train=ready.data.train,
            valid=ready.data.valid,
            collate=task.collate,
            plan=task.plan,
            in_order=task.in_order,
            augment=task.augment if task.augments else None,
            settings=build_settings(full),
            seed=full["seed"],
            run=run,
            evaluate=greedy_evaluation(task, full, ready.data.valid_examples, trust, ready.objective),
            higher_is_better=task.higher_is_better,
            display=display,
            budget=ready.budget,
            guess=guess_loss(task.target, fine_tuned="init" in full),
            tasks=tuple(tasks_of(full)),
        )
        summary = trainer.fit()
    return Predictor(systems(ready.model, task, full, run.path, trust), summary)


def systems(model: Model | MultiTask, task: Task, full: Recipe, path: Path, trust: bool) -> dict[str, System]:
    """The system of each task."""
    if not isinstance(task, Tasks) or not isinstance(model, MultiTask):
        return {"": System(model, task, full, path, trust)}
    return {
        name: System(model.of(name), task.tasks[name], single, path, trust) for name, single in tasks_of(full).items()
    }
