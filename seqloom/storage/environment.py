"""environment.json of a run folder: what results depend on to the last bit, beside the recipe."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import torch

from seqloom.storage.files import read_json, replace_file, saving, to_json
from seqloom.version import __version__

NAME = "environment.json"


def stored_threads(folder: Path) -> int:
    """How many threads a run was trained with; 0 if it is not known."""
    path = folder / NAME
    return int(read_json(path).get("threads", 0)) if path.exists() else 0


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
        f"{name} was {before[name]} and is now {value}: results may differ from an unbroken run in the last bits"
        for name, value in now.items()
        if name in before and before[name] != value
    ]
