"""`seqloom evaluate` and `seqloom score`: a run measured on pairs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from seqloom.cli import options


@click.command()
@options.runs
@options.task
@options.data
@options.columns
@options.beam_size
@options.replace_unknown
@options.wait
@options.helpers
@options.geometric
@options.settings
@options.device
@options.threads()
@options.skip_bad
@options.max_characters
@options.trust
@click.option("--confusion", type=options.FILE, help="The confusion matrix as a picture to write, PNG or SVG.")
def evaluate(
    runs: tuple[Path, ...],
    task: str,
    data: tuple[Path, ...],
    columns: list[str | int] | None,
    header: bool | None,
    beam_size: int | None,
    geometric: bool,
    settings: tuple[str, ...],
    device: str,
    threads: int,
    skip_bad: bool,
    max_characters: int | None,
    trust: bool,
    confusion: Path | None,
    **given: Any,
) -> None:
    """Measure a run on pairs by the metrics of its task; prints JSON.

    RUNS are run folders, several of them an ensemble, or one exported folder.
    """
    from seqloom.engines.load import load

    if confusion is not None:
        options.picture_paths((confusion,))
    average: Any = "geometric" if geometric else "arithmetic"
    model = load(*runs, device=device, trust=trust, average=average, threads=threads, task=task)
    options.set_limit(model, max_characters)
    examples = options.read_examples(model, data, skip_bad, columns, header)
    asked = {**options.loaded_helpers(model, given), **given, **options.search_settings(settings, beam_size)}
    measured = model.evaluate(examples, **asked) if confusion is None else confuse(model, examples, confusion, asked)
    options.note_unknown(model, examples, model.task.source is None)
    print(json.dumps({"examples": len(examples), **{name: round(value, 4) for name, value in measured.items()}}))


def confuse(model: Any, examples: list[Any], path: Path, asked: dict[str, Any]) -> dict[str, float]:
    """Draw which labels or tags were taken for which; returns the metrics."""
    from seqloom.analysis.confusion import confusions, draw_confusions
    from seqloom.errors import SeqloomError
    from seqloom.inference.candidates import best_predictions
    from seqloom.inference.evaluation import measure

    task = model.task
    if task.source is None or task.eos is not None or task.target.vocabulary is None:
        raise SeqloomError("--confusion is for runs that choose labels or tags, such as those of the recipe labels")
    sources, references = task.references(examples)
    found = best_predictions(model.system, sources, **asked)
    draw_confusions(confusions(task, [one.text for one in found], references), path)
    return measure(model.system, found, references, sources)


@click.command()
@options.runs
@options.task
@options.data
@options.columns
@options.geometric
@options.device
@options.threads()
@options.skip_bad
@options.max_characters
@options.trust
def score(
    runs: tuple[Path, ...],
    task: str,
    data: tuple[Path, ...],
    columns: list[str | int] | None,
    header: bool | None,
    geometric: bool,
    device: str,
    threads: int,
    skip_bad: bool,
    max_characters: int | None,
    trust: bool,
) -> None:
    """Print the log-probability of each pair, one per line."""
    from seqloom.compute.threads import choose_threads
    from seqloom.predictor import Predictor

    choose_threads(threads)
    model = Predictor.load(runs, device, trust, "geometric" if geometric else "arithmetic", task)
    options.set_limit(model, max_characters)
    examples = options.read_examples(model, data, skip_bad, columns, header)
    for value in model.score(examples):
        print(f"{value:.6f}")
    options.note_unknown(model, examples, True)
