"""Measures of models of films: nats of a frame given those before it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from seqloom.studies.gates import Measures
from seqloom.studies.measures.pixels import as_text
from seqloom.studies.sources.films import KNOWN, films, own_nats
from seqloom.studies.study import Splits, test_examples

if TYPE_CHECKING:
    from seqloom.predictor import Predictor

CONTINUED, BEFORE = 2, 2  # ways to go on, and frames before, of the picture


def nats_per_frame(kind: str) -> Callable[[Predictor, Splits], Measures]:
    """Nats per frame after those that are given: of the model, of the last frame copied with the chance that a pixel
    changes ("copy_nats"), and the entropy of the films ("own_nats").
    """

    def measure(model: Predictor, data: Splits) -> Measures:
        codec = model.task.target
        test = [codec.decode(codec.encode(each.target)) for each in test_examples(model, data)]
        whole, given = np.array(model.score(test)), np.array(model.score([film[:KNOWN] for film in test]))
        frames = len(test[0]) - KNOWN
        train = np.stack([codec.decode(codec.encode(each.target)) for each in model.examples(data.train)])
        return {
            "nats_per_frame": float((given - whole).mean()) / frames,
            "copy_nats": copied(train > 0, np.stack(test) > 0),
            "own_nats": own_nats(kind),
        }

    return measure


def continued(kind: str) -> Callable[[Predictor, Splits], dict[str, Any]]:
    """For the picture of a study: a test film with a surprise, and how a model goes on after the given frames."""

    def shown(model: Predictor, data: Splits) -> dict[str, Any]:
        surprises = [nats[KNOWN] for _, nats in films(kind, "test")]  # of the film whose next frame is the least likely
        chosen = test_examples(model, data)[int(np.argmax(surprises))].target
        _, (whole, *found) = model.complete(chosen, keep=KNOWN, count=CONTINUED, seed=1)
        rows = [each.value[KNOWN - BEFORE :] for each in (whole, *found)]
        return {"shape": list(rows[0].shape), "rows": [as_text(each) for each in rows]}

    return shown


def copied(train: np.ndarray, test: np.ndarray) -> float:
    """Nats per frame if each pixel is that of the frame before, but for a chance that training films give for black and
    for white.  bool (films, T, H, W)
    """
    nats = 0.0
    for white in (False, True):
        before = train[:, KNOWN - 1 : -1] == white
        chance = float(((train[:, KNOWN:] & before).sum() + 1) / (before.sum() + 2))  # of white
        seen = test[:, KNOWN - 1 : -1] == white
        ones = int((test[:, KNOWN:] & seen).sum())
        nats -= ones * np.log(chance) + (int(seen.sum()) - ones) * np.log1p(-chance)
    return float(nats) / (len(test) * (test.shape[1] - KNOWN))
