"""Where data sets are found, and where files made for a study are written."""

from __future__ import annotations

import os
from pathlib import Path

from seqloom.errors import SeqloomError
from seqloom.storage.files import replace_file


def data_set(*names: str) -> Path:
    """A file under $SEQLOOM_DATA."""
    root = os.environ.get("SEQLOOM_DATA")
    if not root:
        raise SeqloomError("SEQLOOM_DATA is not set: set it to the folder that holds the data sets")
    path = Path(root).joinpath(*names)
    if not path.exists():
        raise SeqloomError(f"{path} is missing: this result needs the data set {names[0]} under SEQLOOM_DATA")
    return path


def write_file(folder: Path, name: str, text: str) -> list[str]:
    """A file made for a study, as the list of paths that a split has."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    replace_file(path, text.encode())
    return [str(path)]
