"""Seqloom: from a file of pairs to a trained, explained, reusable sequence-to-sequence model.

model = seqloom.fit("pairs.tsv", out="runs/first")
model.predict(["loom"])
seqloom.load("runs/first").explain("loom").attention
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["Predictor", "SeqloomError", "fit", "load"]

if TYPE_CHECKING:
    from pathlib import Path

    from seqloom.errors import SeqloomError
    from seqloom.fitting import fit
    from seqloom.predict import Predictor


def load(path: str | Path, device: str = "auto", trust: bool = False) -> Predictor:
    """A trained run. Its own code, if it has any (`module:Class`), is refused unless you trust it."""
    from seqloom.predict import Predictor

    return Predictor.load(path, device, trust)


def __getattr__(name: str) -> Any:
    """The rest is imported when it is first asked for: `import seqloom` alone stays quick."""
    if name == "fit":
        from seqloom.fitting import fit

        return fit
    if name == "Predictor":
        from seqloom.predict import Predictor

        return Predictor
    if name == "SeqloomError":
        from seqloom.errors import SeqloomError

        return SeqloomError
    raise AttributeError(f"module 'seqloom' has no attribute {name!r}")
