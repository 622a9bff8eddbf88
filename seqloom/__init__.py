"""Seqloom: from a file of pairs to a trained, explained, reusable sequence-to-sequence model.

model = seqloom.fit("pairs.tsv", out="runs/first")
model.predict(["loom"])
seqloom.load("runs/first").explain("loom").attention
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["Predictor", "SeqloomError", "compare", "fit", "load"]

if TYPE_CHECKING:
    from pathlib import Path

    from seqloom.engines.exported import Exported
    from seqloom.ensemble import Average
    from seqloom.errors import SeqloomError
    from seqloom.explain.compare import compare
    from seqloom.fitting import fit
    from seqloom.predict import Predictor


def load(
    *paths: str | Path,
    device: str = "auto",
    trust: bool = False,
    average: Average = "arithmetic",
    threads: int | None = None,
) -> Predictor | Exported:
    """A trained run, or an exported one; several runs are an ensemble.

    A run's own code (`module:Class`) is refused unless you trust it. Threads: 0 for what a short measurement finds best
    (of an exported model, one); None leaves torch as it is.
    """
    from seqloom.engines.engine import is_exported

    if any(map(is_exported, paths)):
        from seqloom.engines.exported import Exported

        return Exported.load(paths, device, trust, threads or 1)
    from seqloom.predict import Predictor

    if threads is not None:
        from seqloom.threads import choose_threads

        choose_threads(threads)
    return Predictor.load(paths, device, trust, average)


def __getattr__(name: str) -> Any:
    """The rest is imported when it is first asked for: `import seqloom` alone stays quick."""
    if name == "fit":
        from seqloom.fitting import fit

        return fit
    if name == "compare":
        from seqloom.explain.compare import compare

        return compare
    if name == "Predictor":
        from seqloom.predict import Predictor

        return Predictor
    if name == "SeqloomError":
        from seqloom.errors import SeqloomError

        return SeqloomError
    raise AttributeError(f"module 'seqloom' has no attribute {name!r}")
