"""Measures of objectives."""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING, Any

from seqloom.studies.gates import Measures
from seqloom.studies.study import Splits, test_examples

if TYPE_CHECKING:
    from seqloom.predictor import Predictor


def by_beam(model: Predictor, data: Splits) -> Measures:
    """BLEU with beams of 5, 1 and 10, unconstrained ("bleu") and with the words of the source only ("bag_bleu").

    Ranked as the recipe says; with a beam of 5 also by the sum of log-probabilities.
    """
    sources, references = model.task.references(test_examples(model, data))
    task: Any = model.task
    found: Measures = {}
    for name, bag in (("bleu", False), ("bag_bleu", True)):
        task.bag = bag
        for size in (5, 1, 10):
            predictions = model.predict(sources, beam_size=size)
            found[f"{name}_{size}"] = task.measure(predictions, references)["bleu"]
        predictions = model.predict(sources, beam_size=5, rank_by="sum")
        found[f"{name}_5_by_sum"] = task.measure(predictions, references)["bleu"]
    return found


def mode_probabilities(model: Predictor, data: Splits) -> Measures:
    """The probability of outputs of six tokens a and b, by the number of b; and of all others."""
    texts = [" ".join(each) for each in product("ab", repeat=6)]
    probabilities = [math.exp(score) for score in model.score([("go", text) for text in texts])]
    found = {f"{count} b": 0.0 for count in range(7)}
    for text, probability in zip(texts, probabilities):
        found[f"{text.count('b')} b"] += probability
    return {**found, "others": max(1 - sum(probabilities), 0.0)}
