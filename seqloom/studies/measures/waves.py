"""Measures of models of sound: bits per sample, what counts need, and whether what they say is understood."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from seqloom.errors import SeqloomError
from seqloom.studies.gates import Measures
from seqloom.studies.study import Splits, evaluate_test_set, test_examples

if TYPE_CHECKING:
    from seqloom.predictor import Predictor

WEIGHT = 5.0  # of a shorter context, in counts
RECOGNISER = "recogniser"  # the run that listens
TIMES, LONGEST, RATE = 10, 4_000, 8_000  # how often each digit is said; samples, and how many per second


def bits_and_digits(model: Predictor, data: Splits) -> Measures:
    """Bits per sample, and of a model that is asked for digits how many are understood, in %; else accuracy."""
    if model.model.is_head:
        return evaluate_test_set(model, data)
    found = bits_and_counts(model, data)
    if model.task.source is None:
        return found
    return {**found, "digits_understood": understood(model, recogniser(model))}


def recogniser(model: Predictor) -> Predictor:
    """The run of the same study that hears digits."""
    from seqloom.predictor import Predictor

    folder = (model.system.path or Path()).parent / RECOGNISER
    if not (folder / "format.json").exists():
        raise SeqloomError(
            f"the run that listens is not there: first run seqloom reproduce digit-waves --only {RECOGNISER}"
        )
    return Predictor.load(folder, "cpu")


def understood(model: Predictor, listener: Predictor) -> float:
    """How many digits that the model says the listener takes for what they should be, in %."""
    right = 0
    for digit in "0123456789":
        said = model.generate(TIMES, source=digit, maximum_length=LONGEST, seed=1)
        right += sum(answer == digit for answer in listener.predict([(each, RATE) for each in said]))
    return 100 * right / (10 * TIMES)


def bits_and_counts(model: Predictor, data: Splits) -> Measures:
    """Bits per sample of the test set, by the model and by counts over the same levels ("order_2_bits")."""
    codec = model.task.target
    train = [codec.encode(each.target) for each in model.examples(data.train)]
    test = [codec.encode(each.target) for each in test_examples(model, data)]
    floor = order_two(train, test, int(codec.vocabulary or 0))
    return {**evaluate_test_set(model, data), "order_2_bits": floor}


def order_two(train: Iterable[np.ndarray], test: Iterable[np.ndarray], size: int) -> float:
    """Bits per sample of counts of samples after the two before them, mixed with those after one and after none."""
    counts = np.zeros((size, size, size))
    for tokens in train:
        before = np.concatenate([[0, 0], tokens])  # 0 is no level
        np.add.at(counts, (before[:-2], before[1:-1], tokens), 1)
    none = (counts.sum((0, 1)) + 1) / (counts.sum() + size)  # (V,)
    one = mixed(counts.sum(0), none[None])  # (V, V)
    bits, samples = 0.0, 0
    for tokens in test:
        before = np.concatenate([[0, 0], tokens])
        first, second = before[:-2], before[1:-1]
        own = counts[first, second]  # (T, V)
        found = mixed(own, one[second])[np.arange(len(tokens)), tokens]
        bits, samples = bits - float(np.log2(found).sum()), samples + len(tokens)
    return bits / samples


def mixed(counts: np.ndarray, shorter: np.ndarray) -> np.ndarray:
    """Shares of counts (..., V), with WEIGHT counts spread as those of the shorter context are."""
    return (counts + WEIGHT * shorter) / (counts.sum(-1, keepdims=True) + WEIGHT)
