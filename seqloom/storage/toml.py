"""TOML files of recipes and run folders."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from seqloom.errors import SeqloomError, one_line
from seqloom.storage.files import DEEPEST, MEGABYTE, check_plain, read_bytes, replace_file, saving

EXPECTED = "expected a TOML file"
DOTS = 1000  # of one line: the time and memory that tomllib takes for a dotted key grow with the square of its length


def read_toml(path: Path, own: bool = False) -> dict[str, Any]:
    """The content of a TOML file; errors are one line. A file that the user named (`own`) may be a link or a pipe."""
    path = Path(path)
    content = read_bytes(path, MEGABYTE, EXPECTED, own)
    try:
        return parse_toml(content.decode().replace("\r\n", "\n"))
    except UnicodeDecodeError as error:
        raise SeqloomError(f"{path}: not UTF-8 at byte {error.start}; {EXPECTED}") from error
    except ValueError as error:
        hint = "" if path.suffix == ".toml" else "; a recipe is a TOML file, examples are given with --data"
        raise SeqloomError(f"{path}: not valid TOML: {one_line(error)}{hint}") from error


def parse_toml(text: str) -> dict[str, Any]:
    """The content of a text in TOML. Raises ValueError, also for tables nested too deeply to be copied or searched."""
    if max(line.count(".") for line in text.split("\n")) > DOTS:
        raise ValueError(f"a line with more than {DOTS:,} dots")
    try:
        content = tomllib.loads(text)
    except RecursionError:
        raise ValueError(f"nested more than {DEEPEST} levels deep") from None
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:  # of Python, which converts no more than 4,300 digits
        raise ValueError("an integer has thousands of digits") from None
    check_plain(content)
    return content


def write_toml(content: dict[str, Any], path: Path) -> None:
    """Write a TOML file, which appears complete or not at all."""
    import tomli_w

    with saving(Path(path)):
        replace_file(Path(path), tomli_w.dumps(content).encode())
