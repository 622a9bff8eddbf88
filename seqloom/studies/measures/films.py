"""Measures of models of films: nats of a frame given those before it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from seqloom.studies.sources.films import KNOWN, own_nats
from seqloom.studies.study import Measures, Splits, test_examples

if TYPE_CHECKING:
    from seqloom.predictor import Predictor


def nats_per_frame(kind: str) -> Callable[[Predictor, Splits], Measures]:
    """Nats per frame after those that are given: of the model, of the last frame copied ("copy_nats"), with the chance
    that a pixel changes, and of what nobody can know ("own_nats").
    """

    def measure(model: Predictor, data: Splits) -> Measures:
        codec = model.task.target
        films = [codec.decode(codec.encode(each.target)) for each in test_examples(model, data)]
        whole, given = np.array(model.score(films)), np.array(model.score([film[:KNOWN] for film in films]))
        frames = len(films[0]) - KNOWN
        train = np.stack([codec.decode(codec.encode(each.target)) for each in model.examples(data.train)])
        return {
            "nats_per_frame": float((given - whole).mean()) / frames,
            "copy_nats": copied(train > 0, np.stack(films) > 0),
            "own_nats": own_nats(kind),
        }

    return measure


def copied(train: np.ndarray, test: np.ndarray) -> float:
    """Nats per frame if each pixel is that of the frame before, but for a chance that training films give for black and
    for white.  bool (films, T, H, W)
    """
    nats = 0.0
    for white in (False, True):
        before = train[:, KNOWN - 1 : -1] == white
        chance = float((train[:, KNOWN:] & before).sum() / before.sum())  # of white
        seen = test[:, KNOWN - 1 : -1] == white
        ones = int((test[:, KNOWN:] & seen).sum())
        nats -= ones * np.log(chance) + (int(seen.sum()) - ones) * np.log1p(-chance)
    return float(nats) / (len(test) * (test.shape[1] - KNOWN))
