"""Measures of captions, and what captions are worth that were written without looking, or without learning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from seqloom.data.codecs.image import Image
from seqloom.studies.study import Measures, Splits, evaluate_test_set, test_examples
from seqloom.types import Example

if TYPE_CHECKING:
    from seqloom.predictor import Predictor

BLOCK = 200  # pictures compared with all others at once


def own_and_other_picture(model: Predictor, data: Splits) -> Measures:
    """The metrics of the task, and the same ("other_") where each picture is that of another example."""
    examples = test_examples(model, data)
    pictures = list(dict.fromkeys(each.source for each in examples))
    others = dict(zip(pictures, [*pictures[1:], pictures[0]]))
    shuffled = model.evaluate([replace(each, source=others[each.source]) for each in examples])
    found = {name: value for name, value in shuffled.items() if name != "examples"}
    return {**evaluate_test_set(model, data), **{f"other_{name}": value for name, value in found.items()}}


def majority_caption(train: Sequence[Example], sources: Sequence[Any]) -> list[str]:
    """For every picture the same caption: the one that occurs most often, or of several the first."""
    counts = Counter(str(each.target) for each in train)
    return [counts.most_common(1)[0][0]] * len(sources)


def nearest_caption(train: Sequence[Example], sources: Sequence[Any], size: int = 16) -> list[str]:
    """For each picture the first caption of the training picture whose pixels are nearest, at `size` x `size`."""
    codec = Image(size=size)
    first: dict[Any, str] = {}
    for each in train:
        first.setdefault(each.source, str(each.target))
    captions = list(first.values())
    known = np.stack([codec.encode(source).ravel() for source in first]).astype(np.float32)  # (N, pixels)
    lengths = (known**2).sum(1)
    found: list[str] = []
    for begin in range(0, len(sources), BLOCK):
        asked = np.stack([codec.encode(each).ravel() for each in sources[begin : begin + BLOCK]]).astype(np.float32)
        nearest = (lengths - 2 * asked @ known.T).argmin(1)  # of squared distances, without the length of what is asked
        found += [captions[place] for place in nearest.tolist()]
    return found
