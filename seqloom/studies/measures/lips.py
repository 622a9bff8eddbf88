"""Measures of lip readers: with and without a beam, and with one of two inputs missing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from seqloom.studies.gates import Measures
from seqloom.studies.study import Splits, evaluate_test_set, test_examples

if TYPE_CHECKING:
    from seqloom.predictor import Predictor

INPUTS = {"both": (), "sound": ("frames", "fps"), "lips": ("sound", "rate")}  # what is left out of a film


def with_and_without_beam(model: Predictor, data: Splits) -> Measures:
    """The metrics of the task with the search of the recipe, and without a beam ("greedy_")."""
    greedy = evaluate_test_set(model, data, beam_size=1)
    found = {f"greedy_{name}": value for name, value in greedy.items() if name != "examples"}
    return {**evaluate_test_set(model, data), **found}


def with_each_input(model: Predictor, data: Splits) -> Measures:
    """The metrics of the task on lips and sound ("both_"), on sound alone, and on lips alone."""
    examples = test_examples(model, data)
    measures: Measures = {}
    for name, missing in INPUTS.items():
        found = model.evaluate([replace(each, source=without(each.source, missing)) for each in examples])
        measures |= {f"{name}_{metric}": value for metric, value in found.items() if metric != "examples"}
    return measures


def without(path: str, missing: tuple[str, ...]) -> dict[str, Any]:
    """The arrays of a film except for some."""
    with np.load(path) as arrays:
        return {name: arrays[name] for name in arrays.files if name not in missing}


def each_as_it_reads(model: Predictor, data: Splits) -> Measures:
    """What there is to measure of a model of lips, or of one that hears as well."""
    hears = model.task.source is not None and bool(model.task.source.parts)
    return with_each_input(model, data) if hears else with_and_without_beam(model, data)
