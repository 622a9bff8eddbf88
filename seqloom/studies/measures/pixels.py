"""Measures of models of pictures: their likelihood, and whether they know which halves belong together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from seqloom.studies.study import Measures, Splits, test_examples

if TYPE_CHECKING:
    from seqloom.predictor import Predictor

HALVES = 500  # pictures


def nats_and_halves(model: Predictor, data: Splits) -> Measures:
    """Nats per picture, bits per pixel, and how often a lower half is likelier than that of another picture."""
    examples = test_examples(model, data)
    codec = model.task.target
    pictures = [codec.decode(codec.encode(each.target)) for each in examples[:: max(len(examples) // HALVES, 1)]]
    own = np.array(model.score(pictures))
    others = np.array(model.score([with_lower_half(*pair) for pair in zip(pictures, [*pictures[1:], pictures[0]])]))
    found = {name: value for name, value in model.evaluate(examples).items() if name != "examples"}
    return {**found, "own_half_likelier": 100 * float((own > others).mean())}


def with_lower_half(picture: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The upper half of one picture and the lower of another."""
    half = len(picture) // 2
    return np.concatenate([picture[:half], other[half:]])
