"""Measures of models that write while they read."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from seqloom.inference.candidates import best_predictions
from seqloom.studies.gates import Measures
from seqloom.studies.study import Splits, evaluate_test_set, test_examples

if TYPE_CHECKING:
    from seqloom.predictor import Predictor


def metrics_and_delay(model: Predictor, data: Splits) -> Measures:
    """Delayed copy: the metrics of the task, and the mean delay in source tokens beyond the least possible."""
    from seqloom.data.generators.delayed_copy import delays

    sources, references = model.task.references(test_examples(model, data))
    found = best_predictions(model.system, sources)
    late = delays(sources, [each.times or [] for each in found])
    measured = model.task.measure([each.text for each in found], references)
    return {**measured, "delay": sum(late) / len(late) if late else math.inf}


def beam_and_greedy(model: Predictor, data: Splits) -> Measures:
    """The metrics of the task and latency with a beam of 4, and the first metric by greedy search."""
    found = evaluate_test_set(model, data, beam_size=4)
    name = model.task.metrics[0]
    return {name: found.pop(name), f"greedy_{name}": evaluate_test_set(model, data, beam_size=1)[name], **found}


def by_wait(metric: str, *waits: int) -> Callable[[Predictor, Splits], Measures]:
    """A metric and the average proportion (AP) of the source read, for each wait; an agent has a policy of its own."""

    def measure(model: Predictor, data: Splits) -> Measures:
        examples = test_examples(model, data)
        if model.model.decoder.blanks:
            found = model.evaluate(examples)
            return {metric: found[metric], "AP": found["average_proportion"]}
        measured: Measures = {}
        for wait in waits:
            found = model.evaluate(examples, wait=wait)
            measured[f"{metric}, k = {wait}"] = found[metric]
            measured[f"AP, k = {wait}"] = found["average_proportion"]
        return measured

    return measure


def hard_and_expected(model: Predictor, data: Splits) -> Measures:
    """The metrics of the task; for monotonic attention also with expected contexts, as in training."""
    attention: Any = getattr(model.model.decoder, "attention", None)
    found = evaluate_test_set(model, data)
    expected = found
    if getattr(attention, "decoding", "") == "hard":
        attention.decoding = "soft"
        expected = evaluate_test_set(model, data)
        attention.decoding = "hard"
    names = model.task.metrics
    return {**{name: found[name] for name in names}, **{f"expected_{name}": expected[name] for name in names}}
