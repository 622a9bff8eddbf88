"""Measures of parse trees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seqloom.studies.gates import Measures
from seqloom.studies.study import Splits, test_examples

if TYPE_CHECKING:
    from seqloom.predictor import Predictor


def constrained_and_free(model: Predictor, data: Splits) -> Measures:
    """The metrics of outputs that can only be trees, and of the same model's outputs without that constraint."""
    examples = test_examples(model, data)
    found = model.evaluate(examples)
    task: Any = model.task
    valid, task.valid = task.valid, ""
    try:
        free = model.evaluate(examples)
    finally:
        task.valid = valid
    return {**found, **{f"free_{name}": value for name, value in free.items() if name != "examples"}}
