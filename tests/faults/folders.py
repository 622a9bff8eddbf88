"""Small trained runs and exported folders to attack, made once per process."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

SIDE = {"type": "recurrent", "size": 8, "embedding_size": 8}
LAYERS = {"type": "transformer", "size": 8, "heads": 2, "hidden": 16, "layers": 1}
TRAIN = {"tokens": 256, "steps": 4, "validate_every": 2, "log_every": 2, "keep": 2, "device": "cpu", "threads": 1}
RECIPES: dict[str, dict[str, Any]] = {
    "translator": {
        "search": {"type": "beam", "beam_size": 2},
        "task": {
            "source": {"type": "text", "units": "char"},
            "target": {"type": "text", "units": "bpe", "size": 270},
            "metrics": ["exact"],
        },
        "encoder": SIDE,
        "decoder": {**SIDE, "attention": {"type": "dot"}},
        "train": {**TRAIN, "ema": 0.5},
    },
    "transformer": {
        "search": {"type": "beam", "beam_size": 2},
        "task": {
            "source": {"type": "text", "units": "unigram", "size": 280},
            "target": {"type": "text", "units": "word"},
            "metrics": ["exact"],
        },
        "encoder": LAYERS,
        "decoder": LAYERS,
        "train": TRAIN,
    },
    "text": {
        "task": {"type": "text", "target": {"type": "text", "units": "byte"}, "window": 8},
        "decoder": SIDE,
        "search": {"type": "sample"},
        "train": {**TRAIN, "optimiser": "sgd"},
    },
}
RUNS = tuple(RECIPES)
EXPORTS = {"ctranslate2": "transformer", "onnx": "translator"}


@cache
def home() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="seqloom-folders-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def environment() -> Any:
    """A context with a cache of our own."""
    return patch.dict(os.environ, {"SEQLOOM_CACHE": str(home() / "cache")})


@cache
def data(name: str = "pairs") -> Path:
    """Numbers and the same backwards; or lines, for a running text."""
    path = home() / f"{name}.tsv"
    columns = 2 if name == "pairs" else 1
    lines = ["\t".join([str(number), str(number)[::-1]][:columns]) for number in range(100, 160)]
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


@cache
def original(name: str) -> Path:
    """The folder of a run, or of an exported one, not to be changed."""
    import seqloom
    from seqloom.engines.export import export
    from seqloom.train.display import Display

    torch.set_num_threads(1)
    with environment():
        if name in EXPORTS:
            return export(original(EXPORTS[name]), name, home() / name)
        examples = data("lines" if name == "text" else "pairs")
        seqloom.fit(str(examples), RECIPES[name], out=home() / name, as_written=True, display=Display.quiet())
    return home() / name


def copy_of(name: str, folder: Path) -> Path:
    """A copy to damage, under the name "it"."""
    shutil.copytree(original(name), folder / "it")
    return folder / "it"
