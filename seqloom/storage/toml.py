"""TOML files of recipes and run folders."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from seqloom.errors import SeqloomError, one_line
from seqloom.storage.files import replace_file, saving


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file; errors are one line."""
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise SeqloomError(f"{path}: cannot be read ({error.strerror}); expected a TOML file") from error
    except UnicodeDecodeError as error:
        raise SeqloomError(f"{path}: not UTF-8 at byte {error.start}; expected a TOML file") from error
    except tomllib.TOMLDecodeError as error:
        hint = "" if Path(path).suffix == ".toml" else "; a recipe is a TOML file, examples are given with --data"
        raise SeqloomError(f"{path}: not valid TOML: {one_line(error)}{hint}") from error


def write_toml(content: dict[str, Any], path: Path) -> None:
    """Write a TOML file, which appears complete or not at all."""
    import tomli_w

    with saving(Path(path)):
        replace_file(Path(path), tomli_w.dumps(content).encode())
