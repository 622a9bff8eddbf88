"""`seqloom.load`: a run folder or an exported one, whichever it is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from seqloom.engines.exported import Exported
from seqloom.errors import SeqloomError, show
from seqloom.storage.files import is_exported

if TYPE_CHECKING:
    from seqloom.nn.combine.ensemble import Average
    from seqloom.predictor import Predictor


def load(
    *paths: str | Path,
    device: str = "auto",
    trust: bool = False,
    average: Average = "arithmetic",
    threads: int | None = None,
    task: str = "",
) -> Predictor | Exported:
    """A trained run, or an exported one; several runs are an ensemble. `task` is one of several that a run has.

    A run's own code (`module:Class`) is refused unless you trust it. Threads: 0 measures which number is fastest (an
    exported model takes 1); None leaves torch as it is.
    """
    if any(map(is_exported, paths)):
        if task:
            raise SeqloomError(f"task = {show(task)}: an exported model has one task; leave it out")
        return Exported.load(paths, device, trust, threads or 1)
    from seqloom.predictor import Predictor  # imports torch

    if threads is not None:
        from seqloom.compute.threads import choose_threads

        choose_threads(threads)
    return Predictor.load(paths, device, trust, average, task)
