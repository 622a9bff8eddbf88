"""Pictures whose lines are all like the first: a model that has learned the rule is sure of everything below it."""

import math

import numpy as np
import pytest

import seqloom
from seqloom.train.display import Display

pytestmark = pytest.mark.slow

SIDE = 6
ENTROPY = SIDE * math.log(2)  # of the first line
MODELS = {
    "gated": {"type": "pixels", "style": "gated", "layers": 2},
    "plain": {"type": "pixels", "style": "plain", "layers": 3},
    "row": {"type": "pixels", "style": "row", "layers": 1},
    "diagonal": {"type": "pixels", "style": "diagonal", "layers": 1},
}


def pictures(count: int, seed: int) -> list[np.ndarray]:
    lines = np.random.default_rng(seed).integers(0, 2, (count, 1, SIDE), dtype=np.uint8) * np.uint8(255)
    return [np.repeat(line, SIDE, axis=0) for line in lines]


@pytest.mark.parametrize("name", MODELS)
def test_all_lines_are_the_first(name, tmp_path):
    sizes = {"size": 16, "hidden": 16, "first_kernel": 3, "embedding_size": 4}
    recipe = {
        "task": {"type": "series", "target": {"type": "pixels", "size": SIDE}},
        "search": {"type": "sample"},
        "decoder": {**MODELS[name], **sizes},
        "train": {"steps": 300, "tokens": 16 * SIDE * SIDE, "learning_rate": 1e-2, "schedule": "cosine", "warmup": 10},
    }
    model = seqloom.fit(pictures(640, 1), recipe, out=tmp_path / "run", display=Display.quiet())
    nats = -np.mean(model.score(pictures(64, 2)))
    assert ENTROPY - 0.5 < nats < 2.5 * ENTROPY  # without the rule: 6 * ENTROPY
    drawn = np.stack(model.generate(32, seed=1))
    assert (drawn == drawn[:, :1]).mean() > 0.8
