"""Files that the values of a codec name: their bytes, read with care, for they may be anything."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

from seqloom.errors import UnreadableError


def is_path(value: Any) -> bool:
    """Whether a value names a file."""
    return isinstance(value, (str, os.PathLike))


def read_content(path: Any, most: int, kind: str) -> bytes:
    """The bytes of a regular file, at most so many; `kind` is what it should be, such as "recording"."""
    expected = f"expected the path of a {kind}"
    try:
        if not stat.S_ISREG((facts := os.stat(path)).st_mode):
            raise UnreadableError(f"{path} cannot be read: not a regular file; {expected}")
        if facts.st_size > most:
            size = f"{facts.st_size:,} bytes, more than {most:,}"
            raise UnreadableError(f"{path} has {size}; expected a smaller {kind}")
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise UnreadableError(f"{path}: there is no such file; {expected}") from None
    except (OSError, ValueError) as error:  # ValueError: a null byte
        reason = getattr(error, "strerror", None) or error
        raise UnreadableError(f"{path} cannot be read: {reason}; {expected}") from None
