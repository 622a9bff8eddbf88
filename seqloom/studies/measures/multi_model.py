"""The metrics of every task of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seqloom.studies.gates import Measures
from seqloom.studies.study import Splits

if TYPE_CHECKING:
    from seqloom.predictor import Predictor


def each_task(model: Predictor, data: Splits) -> Measures:
    """{"trees bracket_f1": ...}, on the test set of each task."""
    found: Measures = {}
    for name, splits in data.tasks.items():
        one = model.for_task(name)
        found |= {
            f"{name} {metric}": value for metric, value in one.evaluate(splits.test).items() if metric != "examples"
        }
    return found
