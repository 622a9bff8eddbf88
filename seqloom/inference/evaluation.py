"""A system measured on examples, by the metrics of its task. Without a language model there is no torch here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from seqloom.data.layout import Layout
from seqloom.data.lines import Data, title_of
from seqloom.data.readers import Tally, located_sides, readable
from seqloom.data.readers import examples as read
from seqloom.errors import SeqloomError
from seqloom.inference.candidates import best_predictions
from seqloom.inference.find import Prediction
from seqloom.inference.system import System, encode_source
from seqloom.metrics.latency import latency
from seqloom.tasks.series import Series
from seqloom.types import Example


def read_examples(
    system: System,
    data: Data,
    *,
    columns: Sequence[str | int] | None = None,
    header: bool | None = None,
    skip_bad: bool = False,
    tally: Tally | None = None,
) -> Iterator[Example]:
    """The examples of files or of what Python holds, read as the run's training data was, unless told otherwise."""
    task, tally, title = system.task, tally or Tally(), title_of(data)
    layout = Layout.of(system.recipe["data"]).changed(columns, header)
    options: dict[str, Any] = {"running": task.running, "max_characters": system.max_characters}
    options |= {"located": located_sides(task.given, task.target), "layout": layout}
    rows = read(data, 1 if task.given is None else 2, skip_bad=skip_bad, tally=tally, **options)
    checks: dict[str, Any] = {"skip_bad": skip_bad, "max_characters": system.max_characters, "check": task.check}
    found = readable(rows, task.given, task.target, title, tally, **checks)
    return (each for each, *_ in found)


def gather(system: System, data: Data, **options: Any) -> list[Example]:
    """Examples as they were read; any other data is read now. At least one."""
    if isinstance(data, Iterator):
        data = list(data)
    if not isinstance(data, list) or not all(isinstance(each, Example) and each.line for each in data):
        data = list(read_examples(system, data, **options))
    if not data:
        raise SeqloomError("nothing to evaluate: the data is empty")
    return data


def evaluate(
    system: System,
    data: Data,
    *,
    columns: Sequence[str | int] | None = None,
    header: bool | None = None,
    **options: Any,
) -> dict[str, float]:
    """The task's metrics; the latency of a model that writes while it reads; how well a language model predicts."""
    gathered = gather(system, data, columns=columns, header=header)
    if isinstance(system.task, Series):
        return likelihood(system, gathered)
    if system.task.reads_itself:
        from seqloom.inference.filling import evaluate_masked  # imports torch

        return evaluate_masked(system, gathered)
    if system.task.source is None:
        return perplexity(system, gathered)
    sources, references = system.task.references(gathered)
    return measure(system, best_predictions(system, sources, **options), references, sources)


def measure(
    system: System, found: Sequence[Prediction], references: list[list[Any]], sources: list[Any]
) -> dict[str, float]:
    """The task's metrics of predictions, and their latency."""
    measured = system.task.measure([one.text for one in found], references, sources)
    times = [one.times for one in found if one.times is not None]
    if len(times) < len(found):
        return measured
    return {**measured, **latency(times, [len(encode_source(system, source)[0]) for source in sources])}


def likelihood(system: System, examples: Sequence[Example]) -> dict[str, float]:
    """Of a series: the mean of -log p per step of vectors; of tokens per value, and in bits per dimension."""
    from seqloom.inference.scoring import score  # imports torch

    nats, codec = -sum(score(system, examples)), system.task.target
    steps = sum(len(codec.encode(example.target)) for example in examples)
    if codec.is_vectors:
        return {"nats_per_step": nats / steps}
    return {"nats": nats / len(examples), "bits_per_dimension": nats / steps / float(np.log(2))}


def perplexity(system: System, examples: Sequence[Example]) -> dict[str, float]:
    """Of a language model, per token, and its bits per character."""
    from seqloom.inference.scoring import score  # imports torch

    tokens = sum(len(system.task.target.encode(example.target)) + 1 for example in examples)
    nats = -sum(score(system, examples)) / tokens
    characters = sum(len(str(example.target)) + 1 for example in examples)
    return {
        "perplexity": float(np.exp(nats)),
        "bits_per_character": nats * tokens / characters / float(np.log(2)),
        "nats_per_token": nats,
    }
