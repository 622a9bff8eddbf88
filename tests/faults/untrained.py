"""Tiny models that were never trained: they do not know when to end, and answer anything with something."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from seqloom.config.build import build_model, build_task
from seqloom.config.complete import complete
from seqloom.inference.system import System
from seqloom.predictor import Predictor
from seqloom.storage.run import Run
from seqloom.storage.weights import weights_of

ALPHABET = "abcdefgh .,"
TEXT = {"type": "text", "units": "char"}
SMALL = {"embedding_size": 8, "size": 8}
RECURRENT = {"type": "recurrent", **SMALL}
TRANSFORMER = {"type": "transformer", "size": 8, "layers": 1, "heads": 2, "hidden": 16, "dropout": 0.0}
ADDITIVE = {"type": "additive", "size": 8}
RECIPES: dict[str, dict[str, Any]] = {
    "recurrent": {"encoder": RECURRENT, "decoder": {**RECURRENT, "attention": ADDITIVE}},
    "transformer": {"encoder": TRANSFORMER, "decoder": TRANSFORMER},
    "ctc": {"encoder": RECURRENT, "decoder": {"type": "ctc"}, "objective": "marginal", "search": "prefix_beam"},
    "transducer": {
        "encoder": RECURRENT,
        "decoder": {"type": "transducer", **SMALL, "hidden": 8},
        "objective": "marginal",
        "search": "prefix_beam",
    },
    "speech": {
        "task": {"source": {"type": "audio"}, "target": TEXT},
        "encoder": RECURRENT,
        "decoder": {"type": "ctc"},
        "objective": "marginal",
        "search": "prefix_beam",
    },
}


@cache
def untrained(name: str) -> Predictor:
    """A model by its name in RECIPES."""
    full = complete({"task": {"source": TEXT, "target": TEXT}, **RECIPES[name]}, name)
    task = build_task(full)
    assert task.source is not None
    sound = np.random.default_rng(1).normal(0, 0.1, 8000).astype(np.float32)
    task.source.fit([sound if name == "speech" else ALPHABET])
    task.target.fit([ALPHABET])
    torch.manual_seed(1)
    return Predictor(System(build_model(full, task.source, task.target), task, full))


def untrained_run(name: str, folder: Path) -> Path:
    """The same as a run folder."""
    model = untrained(name)
    run = Run.create(folder / name, model.recipe, model.task.save)
    run.publish(weights_of(model.model))
    return run.path
