"""The lines of files: plain or gzipped, of pipes and standard input, of two aligned files."""

from __future__ import annotations

import gzip
import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import chain
from pathlib import Path
from typing import IO, Any, cast

from seqloom.data.in_use import Hold
from seqloom.errors import SeqloomError

ENDLESS = 2**30  # bytes of a line that is skipped, at most

Data = str | Path | Iterable[Any]  # a path, one or two paths, or examples in any form that `frames` knows


def paths_of(data: Data | None) -> list[str]:
    """The paths that were given; none for a list of examples, which three or more strings are."""
    if isinstance(data, (str, Path)):
        return [str(data)]
    if isinstance(data, (list, tuple)) and len(data) <= 2 and all(isinstance(item, (str, Path)) for item in data):
        return [str(item) for item in data]
    return []


def is_pipe(path: str) -> bool:
    """Whether it can be read only once."""
    return path == "-" or Path(path).is_fifo()


def title_of(data: Any) -> str:
    """What messages call the data."""
    names = ["standard input" if path == "-" else path for path in paths_of(data)]
    if hasattr(data, "iloc"):
        return "the data frame"
    return " and ".join(names) or ("the data set" if hasattr(data, "column_names") else "the list of examples")


@contextmanager
def repeatable(data: Data | None, folder: Path) -> Iterator[Data | None]:
    """The same data, fit for several passes: pipes are copied to a temporary folder first, iterators to a list."""
    paths = paths_of(data)
    if not any(map(is_pipe, paths)):
        yield paths or (list(data) if isinstance(data, Iterator) else data)
        return
    with tempfile.TemporaryDirectory(prefix=".spool-", dir=writable(folder)) as spool, Hold(Path(spool)):
        copies = {path: str(Path(spool) / f"{index}-{Path(path).name}") for index, path in enumerate(paths)}
        for path, copy in copies.items():
            if not is_pipe(path):
                copies[path] = path
                continue
            with nullcontext(sys.stdin.buffer) if path == "-" else open(path, "rb") as pipe, open(copy, "wb") as file:
                shutil.copyfileobj(pipe, file)
        try:
            yield [copies[path] for path in paths]
        except SeqloomError as error:
            message = str(error)
            for path, copy in copies.items():
                message = message.replace(copy, title_of(path))
            raise SeqloomError(message) from None


def writable(folder: Path) -> Path | None:
    """A folder, made if need be; None, which stands for that of temporary files, if it cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None


def lines(name: str, max_characters: int) -> Iterator[bytes]:
    """Lines without their ends. Only a newline ends a line, not U+2028 and its like.

    A line far too long is cut, so that a file that is one endless line does not fill the memory. Its end is only read
    when a further line is asked for.
    """
    limit = 4 * max_characters + 8
    empty = True
    with open_file(name) as file:
        while line := file.readline(limit):
            begin, empty = line.removeprefix(b"\xef\xbb\xbf") if empty else line, False
            yield begin.removesuffix(b"\n").removesuffix(b"\r")
            skipped = len(line)
            while len(line) == limit and not line.endswith(b"\n"):
                line = file.readline(limit)
                skipped += len(line)
                if skipped > ENDLESS:
                    raise SeqloomError(f"{title_of(name)} has a line of more than {ENDLESS:,} bytes; is it text?")
    if empty:
        raise SeqloomError(f"{title_of(name)} is empty; expected at least one example")


@contextmanager
def open_file(name: str) -> Iterator[IO[bytes]]:
    """A file to read, unpacked; what goes wrong is one line."""
    try:
        with _open(name) as file:
            yield file
    except FileNotFoundError:
        raise SeqloomError(f"{name}: there is no such file; check the path") from None
    except IsADirectoryError:
        raise SeqloomError(f"{name} is a folder; expected a file of examples") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise SeqloomError(f"{name} is not a complete gzip file ({error}); pack it again, or drop the .gz") from None
    except OSError as error:
        reason = error.strerror or error
        raise SeqloomError(f"{title_of(name)} cannot be read: {reason}; check its permissions") from None


def aligned_lines(names: list[str], max_characters: int) -> Iterator[tuple[bytes, bytes]]:
    """The lines of two files side by side. Blank lines at the end of the longer one are nothing."""
    left, right = (lines(name, max_characters) for name in names)
    both = 0
    for line in left:
        other = next(right, None)
        if other is None:
            if more := _filled(chain([line], left)):
                raise _uneven(names, [both + more, both])
            return
        both += 1
        yield line, other
    if more := _filled(right):
        raise _uneven(names, [both, both + more])


def _filled(raws: Iterable[bytes]) -> int:
    """How many lines there are up to the last that is not blank."""
    return max((number for number, raw in enumerate(raws, start=1) if raw.strip()), default=0)


def _uneven(names: list[str], counts: list[int]) -> SeqloomError:
    both = " but ".join(f"{name} has {count:,} lines" for name, count in zip(names, counts))
    shorter = names[counts.index(min(counts))]
    return SeqloomError(f"{both}; aligned files need equally many lines, see the end of {shorter}")


def _open(name: str) -> AbstractContextManager[IO[bytes]]:
    if name == "-":
        return nullcontext(sys.stdin.buffer)
    if name.endswith(".gz"):
        return cast(IO[bytes], gzip.open(name, "rb"))
    return open(name, "rb")
