"""Measures of models of pictures: their likelihood, and whether they know which halves belong together."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from seqloom.studies.gates import Measures
from seqloom.studies.study import Splits, test_examples

if TYPE_CHECKING:
    from seqloom.predictor import Predictor

HALVES = 500  # pictures
SHOWN, WAYS = 5, 6  # pictures in a figure, completions of each


def nats_and_halves(model: Predictor, data: Splits) -> Measures:
    """Nats per picture, bits per pixel, and how often a lower half is likelier than that of another picture."""
    examples = test_examples(model, data)
    codec = model.task.target
    pictures = [codec.decode(codec.encode(each.target)) for each in examples[:: max(len(examples) // HALVES, 1)]]
    own = np.array(model.score(pictures))
    others = np.array(model.score([with_lower_half(*pair) for pair in zip(pictures, [*pictures[1:], pictures[0]])]))
    found = {name: value for name, value in model.evaluate(examples).items() if name != "examples"}
    return {**found, "own_half_likelier": 100 * float((own > others).mean())}


def completed(model: Predictor, data: Splits) -> dict[str, Any]:
    """Some test pictures, and completions of their upper halves, in black and white."""
    examples = test_examples(model, data)
    chosen = [each.target for each in examples[:: max(len(examples) // SHOWN, 1)]][:SHOWN]
    rows = [[each.value for each in model.complete(picture, count=WAYS, seed=1)[1]] for picture in chosen]
    return {"shape": list(rows[0][0].shape), "rows": [[as_text(each) for each in row] for row in rows]}


def as_text(picture: np.ndarray) -> str:
    """Black and white as hexadecimal digits of four pixels each."""
    return np.packbits(picture > 127).tobytes().hex()


def from_text(text: str, shape: list[int]) -> np.ndarray:
    """Black and white, 0 and 1, from hexadecimal digits."""
    bits = np.unpackbits(np.frombuffer(bytes.fromhex(text), np.uint8), count=prod(shape))
    return bits.reshape(shape).astype(float)


def with_lower_half(picture: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The upper half of one picture and the lower of another."""
    half = len(picture) // 2
    return np.concatenate([picture[:half], other[half:]])
