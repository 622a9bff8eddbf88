"""Measures of captions, and what captions are worth that were written without looking, or without learning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from seqloom.data.codecs.image import Image
from seqloom.studies.gates import Measures
from seqloom.studies.study import Splits, evaluate_test_set, test_examples
from seqloom.types import Example

if TYPE_CHECKING:
    from seqloom.predictor import Predictor


def own_and_other_picture(model: Predictor, data: Splits) -> Measures:
    """The metrics of the task, and the same ("other_") where each picture is that of another example."""
    examples = test_examples(model, data)
    pictures = list(dict.fromkeys(each.source for each in examples))
    others = dict(zip(pictures, [*pictures[1:], pictures[0]]))
    shuffled = model.evaluate([replace(each, source=others[each.source]) for each in examples])
    found = {name: value for name, value in shuffled.items() if name != "examples"}
    return {**evaluate_test_set(model, data), **{f"other_{name}": value for name, value in found.items()}}


def majority_caption(training: Sequence[Example]) -> Callable[[Any], str]:
    """For every picture the same caption: the one that occurs most often, or of several the first."""
    [(caption, _)] = Counter(str(each.target) for each in training).most_common(1)
    return lambda source: caption


def nearest_caption(training: Sequence[Example], size: int = 16) -> Callable[[Any], str]:
    """For each picture the first caption of the training picture whose pixels are nearest, at `size` x `size`."""
    codec = Image(size=size)
    first: dict[Any, str] = {}
    for each in training:
        first.setdefault(each.source, str(each.target))
    captions = list(first.values())
    known = np.stack([codec.encode(source).ravel() for source in first]).astype(np.float32)  # (N, pixels)
    lengths = (known**2).sum(1)

    def answer(source: Any) -> str:
        asked = codec.encode(source).ravel().astype(np.float32)
        return captions[int((lengths - 2 * known @ asked).argmin())]  # squared distances, without what is the same

    return answer
