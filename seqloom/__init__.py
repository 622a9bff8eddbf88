"""Seqloom: from a file of pairs to a trained, explained, reusable sequence-to-sequence model.

model = seqloom.fit("pairs.tsv", out="runs/first")
model.predict(["loom"])
seqloom.load("runs/first").explain("loom").attention
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from seqloom.version import __version__

__all__ = ["Predictor", "SeqloomError", "__version__", "compare", "diagnose", "fit", "info", "load", "testing"]

if TYPE_CHECKING:
    import seqloom.testing as testing
    from seqloom.analysis.compare import compare
    from seqloom.analysis.diagnosis.diagnose import diagnose
    from seqloom.analysis.info import info
    from seqloom.engines.load import load
    from seqloom.errors import SeqloomError
    from seqloom.predictor import Predictor
    from seqloom.train.fit import fit

HOMES = {
    "Predictor": "predictor",
    "SeqloomError": "errors",
    "compare": "analysis.compare",
    "diagnose": "analysis.diagnosis.diagnose",
    "fit": "train.fit",
    "info": "analysis.info",
    "load": "engines.load",
}


def __getattr__(name: str) -> Any:
    """Everything is imported when it is first asked for: `import seqloom` alone stays quick."""
    if name == "testing":
        return import_module("seqloom.testing")
    if name not in HOMES:
        raise AttributeError(f"module 'seqloom' has no attribute {name!r}")
    return getattr(import_module(f"seqloom.{HOMES[name]}"), name)


def __dir__() -> list[str]:
    """What is there, imported yet or not: for completion in an interpreter."""
    return sorted({*globals(), *__all__})
