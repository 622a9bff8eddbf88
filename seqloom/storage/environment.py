"""environment.json of a run folder: what results depend on to the last bit, beside the recipe."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import torch

from seqloom.compute.processors import most_threads
from seqloom.errors import SeqloomError, show
from seqloom.storage.files import RESTORE, read_json, replace_file, saving, to_json
from seqloom.version import __version__

NAME = "environment.json"
MOST_THREADS = 1024  # beyond what any machine gains from; many more would crash torch


def stored_threads(folder: Path) -> int:
    """How many threads a run was trained with; 0 if that is not known, or more than this machine can take."""
    path = folder / NAME
    count = read_json(path).get("threads", 0) if path.exists() else 0
    if type(count) is not int or not 0 <= count <= MOST_THREADS:
        raise SeqloomError(f"{path}: threads = {show(count)}: expected a number from 1 to {MOST_THREADS:,}; {RESTORE}")
    return count if count <= most_threads() else 0


def store_environment(folder: Path, **more: Any) -> list[str]:
    """Write the present environment; for a resumed run, one line for each change."""
    now: dict[str, Any] = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "seqloom": __version__,
        "machine": platform.machine(),
        "threads": torch.get_num_threads(),
        **more,
    }
    path = folder / NAME
    before = read_json(path) if path.exists() else now
    with saving(path):
        replace_file(path, to_json(now))
    return [
        f"{name} was {brief(before[name])} and is now {value}: results may differ from an unbroken run in the last bits"
        for name, value in now.items()
        if name in before and before[name] != value
    ]


def brief(value: Any) -> str:
    return value[:60] if isinstance(value, str) else show(value)
