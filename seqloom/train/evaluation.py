"""The metrics of a validation, which compare outputs with references."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

from torch import nn

from seqloom.config.build import build_part
from seqloom.config.multi_task import tasks_of
from seqloom.contracts import Objective, Task
from seqloom.inference.system import System
from seqloom.storage.history import Results
from seqloom.train import processes
from seqloom.train.multi_task import Tasks
from seqloom.train.shared_decoding import SharedDecoding
from seqloom.types import Example

Recipe = dict[str, Any]
Sample = tuple[str, str, str]  # source, prediction, reference
Evaluate = Callable[[nn.Module], tuple[Results, Sequence[Sample]]]


def greedy_evaluation(
    task: Task,
    full: Recipe,
    examples: Sequence[Example],
    trust: bool,
    objective: Objective,
    mean_length: bool = False,
) -> Evaluate | None:
    """Greedy outputs for the first `train.decode` examples, of each task if there are several, and one to display.

    All processes must call it: they share the work.
    With `mean_length` outputs are cut at the mean length of the references: to measure the time of a trained model.
    """
    if isinstance(task, Tasks):
        return evaluate_each(task, full, examples, trust, objective, mean_length)
    if task.source is None or not task.metrics or not examples:
        return None
    sources, references = task.references(examples)
    count = full["train"]["decode"] or len(sources)
    sources, references = list(islice(sources, count)), list(islice(references, count))
    lengths = [len(task.target.encode(target)) for targets in references for target in targets]
    # An untrained model would write up to its own length limit, which may be far.
    limit = round(sum(lengths) / len(lengths)) + 1 if mean_length else 2 * max(lengths) + 10
    kind = "prefix_beam" if full["search"]["type"] == "prefix_beam" else "beam"
    table = {"type": kind, "beam_size": 1, "maximum_length": limit}
    if kind == "prefix_beam":
        table["symbols_per_state"] = full["search"]["symbols_per_state"]
    greedy = build_part("search", table, "search", trust)

    line = task.source.line
    decoding = SharedDecoding(sources, search=greedy, **objective.predict_options)

    def evaluate(model: nn.Module) -> tuple[Results, list[Sample]]:
        predictions = decoding.predictions(System(model.eval(), task, full, trust=trust))
        if not processes.is_lead():
            return {}, []
        sample = (line(sources[0]), str(predictions[0]), str(references[0][0]))
        return task.measure(predictions, references, sources), [sample]

    return evaluate


def evaluate_each(
    tasks: Tasks, full: Recipe, examples: Sequence[Example], trust: bool, objective: Any, mean_length: bool
) -> Evaluate:
    """The same for each of several tasks, whose names begin the names of their metrics."""
    found = {}
    for name, recipe in tasks_of(full).items():
        ours = [each for each in examples if each.task == name]
        found[name] = greedy_evaluation(tasks.tasks[name], recipe, ours, trust, objective.of(name), mean_length)

    def evaluate(model: Any) -> tuple[Results, list[Sample]]:
        results: Results = {}
        samples: list[Sample] = []
        for name, measure in found.items():
            if measure is not None:
                metrics, shown = measure(model.of(name))
                results |= {f"{name}/{metric}": value for metric, value in metrics.items()}
                samples += shown
        return results, samples

    return evaluate
