"""Measures of questions about stories."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from seqloom.studies.gates import Measures
from seqloom.studies.study import Splits, evaluate_test_set

if TYPE_CHECKING:
    from seqloom.predictor import Predictor

PUBLISHED = (
    *(0.1, 8.2, 41.8, 4.4, 13.7, 7.9, 20.3, 11.7, 13.6, 9.7),
    *(0.7, 0.0, 0.3, 0.9, 0.0, 0.4, 51.0, 10.5, 81.4, 0.0),
)  # error of bAbI's tasks 1 to 20: Sukhbaatar et al. 2015, table 1


def babi_errors(model: Predictor, data: Splits) -> Measures:
    """Test error, training loss, and the published error."""
    task = int(Path(data.test[0]).stem.split("-")[2])
    scores = model.score(list(model.examples(data.train)))
    found = {"error": 100 - evaluate_test_set(model, data)["exact"], "train_loss": -sum(scores) / len(scores)}
    return {**found, "published": PUBLISHED[task - 1]} if model.recipe["encoder"]["ages"] else found
