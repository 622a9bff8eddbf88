"""The lines of files: plain or gzipped, of pipes and standard input, of two aligned files."""

from __future__ import annotations

import gzip
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any, cast

from seqloom.errors import SeqloomError

Data = str | Path | Sequence[Any]  # a path, one or two paths, or a list of (source, target) tuples or Examples


def paths_of(data: Data | None) -> list[str]:
    """The paths that were given; none for a list of examples, which three or more strings are."""
    if isinstance(data, (str, Path)):
        return [str(data)]
    if data and len(data) <= 2 and all(isinstance(item, (str, Path)) for item in data):
        return [str(item) for item in data]
    return []


def is_pipe(path: str) -> bool:
    """Whether it can be read only once."""
    return path == "-" or Path(path).is_fifo()


def title_of(data: Any) -> str:
    """What messages call the data."""
    names = ["standard input" if path == "-" else path for path in paths_of(data)]
    return " and ".join(names) or "the list of examples"


@contextmanager
def repeatable(data: Data | None, folder: Path) -> Iterator[Data | None]:
    """The same data, fit for several passes: pipes are first copied to files in a temporary folder."""
    paths = paths_of(data)
    if not any(map(is_pipe, paths)):
        yield paths or data
        return
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".spool-", dir=folder) as spool:
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


def lines(name: str, max_characters: int) -> Iterator[bytes]:
    """Lines without their ends. Only a newline ends a line, not U+2028 and its like.

    A line far too long is cut, so that a file that is one endless line does not fill the memory.
    """
    limit = 4 * max_characters + 8
    empty = True
    try:
        with _open(name) as file:
            while line := file.readline(limit):
                rest = line
                while len(rest) == limit and not rest.endswith(b"\n"):
                    rest = file.readline(limit)
                if empty:
                    line, empty = line.removeprefix(b"\xef\xbb\xbf"), False
                yield line.removesuffix(b"\n").removesuffix(b"\r")
    except FileNotFoundError:
        raise SeqloomError(f"{name}: there is no such file; check the path") from None
    except IsADirectoryError:
        raise SeqloomError(f"{name} is a folder; expected a file of examples") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise SeqloomError(f"{name} is not a complete gzip file ({error}); pack it again, or drop the .gz") from None
    except OSError as error:
        reason = error.strerror or error
        raise SeqloomError(f"{title_of(name)} cannot be read: {reason}; check its permissions") from None
    if empty:
        raise SeqloomError(f"{title_of(name)} is empty; expected at least one example")


def aligned_lines(names: list[str], max_characters: int) -> Iterator[tuple[bytes, bytes]]:
    """The lines of two files side by side."""
    left, right = (lines(name, max_characters) for name in names)
    both = 0
    for line in left:
        other = next(right, None)
        if other is None:
            raise _uneven(names, [both + 1 + sum(1 for _ in left), both])
        both += 1
        yield line, other
    more = sum(1 for _ in right)
    if more:
        raise _uneven(names, [both, both + more])


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
