"""What a command tells a person, and how it ends: a failure is one line on standard error.

Exit codes: 0 success; 2 a mistake that the user can fix, or a machine without memory or room; 70 an error of our own
(EX_SOFTWARE), whose traceback is in a file; 130 interrupted. With SEQLOOM_TRACEBACK=1, or `seqloom --traceback VERB`,
tracebacks are printed as well.
"""

from __future__ import annotations

import errno
import io
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn
from zlib import crc32

from seqloom.errors import SeqloomError, one_line, printable
from seqloom.version import __version__

MISTAKE, INTERNAL, INTERRUPTED = 2, 70, 130
TRACEBACK = "SEQLOOM_TRACEBACK"
INPUT, OUTPUT = "standard input", "standard output"
OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "not enough memory", "bad_alloc", "Cannot allocate memory")


def note(text: str) -> None:
    """To the person, not into the pipe; it is no error if standard error is closed."""
    try:
        print(printable(text), file=sys.stderr, flush=True)
    except OSError:
        discard(sys.stderr)


def fail(reason: str, code: int = MISTAKE) -> NoReturn:
    note(f"seqloom: {' '.join(reason.split())}")
    leave(code)


def leave(code: int) -> NoReturn:
    """Exit, with standard output flushed: if the interpreter failed to, it would print a traceback of its own."""
    try:
        sys.stdout.flush()
    except OSError:
        discard(sys.stdout)
    sys.exit(code)


def in_one_line(run: Callable[[], int]) -> NoReturn:
    """Run a command, which returns its exit code; whatever goes wrong becomes one line."""
    open_standard_streams()
    try:
        code = run()
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except SystemExit as request:
        code = request.code if isinstance(request.code, int) else 0
    except BaseException as error:  # also the panics of libraries in Rust
        if os.environ.get(TRACEBACK):
            traceback.print_exc()
        report_failure(error)
    leave(code)


def report_failure(error: BaseException) -> NoReturn:
    """End the command with the line that an error deserves."""
    if isinstance(error, SeqloomError):
        fail(str(error))
    from_library = isinstance(error, (RuntimeError, OSError)) and any(words in str(error) for words in OUT_OF_MEMORY)
    if isinstance(error, MemoryError) or from_library:
        fail(
            f"out of memory ({type(error).__name__}: {one_line(error)[:120]}); use smaller batches (train.tokens), a "
            "narrower beam, shorter inputs or a smaller model"
        )
    if isinstance(error, OSError):
        unnamed = INPUT if error.errno in (errno.EBADF, errno.EISDIR, errno.EIO) else "a file"
        fail(f"{error.filename or unnamed}: {error.strerror or error}")
    if isinstance(error, UnicodeEncodeError) and error.encoding == getattr(sys.stdout, "encoding", None) != "utf-8":
        fail(f"{OUTPUT}: its encoding, {error.encoding}, lacks a character; set PYTHONIOENCODING=utf-8")
    name = f"{crc32(traceback.format_exc().encode(errors='replace')):08x}"
    what = f"{type(error).__name__}: {one_line(error)[:200]}"
    fail(f"internal error {name} ({what}); {details(name)}, please report it", INTERNAL)


def details(name: str) -> str:
    """Write the traceback of the error at hand to a file; says where."""
    about = f"seqloom {__version__}, Python {sys.version}\n{' '.join(map(repr, sys.argv))}\n\n"
    try:
        handle, path = tempfile.mkstemp(prefix=f"seqloom-error-{name}-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(about + traceback.format_exc())
    except OSError as problem:
        return f"the details could not be written ({problem.strerror}): {TRACEBACK}=1 shows them"
    return f"the details are in {path}"


# -- standard streams


class StandardOutput(io.TextIOWrapper):
    """Names itself in errors such as a full disk. A reader that has closed the pipe has all that it wanted: success."""

    def write(self, text: str) -> int:
        with self.named():
            return super().write(text)

    def flush(self) -> None:
        with self.named():
            super().flush()

    @contextmanager
    def named(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            discard(self)
            sys.exit(0)  # not an OSError: click would turn that into exit code 1
        except OSError as error:
            error.filename = OUTPUT
            raise


class ClosedStream(io.TextIOBase):
    """Stands for a standard stream that was closed when the command began. Whoever needs it gets one line."""

    def __init__(self, name: str):
        self.about = name

    def refuse(self, *_: Any) -> NoReturn:
        raise SeqloomError(f"{self.about} is closed: give a file or a pipe")

    write = read = readline = fileno = __next__ = refuse
    buffer = property(refuse)

    def flush(self) -> None:
        """Nothing was written."""

    def isatty(self) -> bool:
        return False


def open_standard_streams() -> None:
    """Take the place of closed standard streams, lest the next file that is opened gets the descriptor of one."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest that is free
    sys.stdin = sys.stdin or ClosedStream(INPUT)
    sys.stdout = sys.stdout or ClosedStream(OUTPUT)
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    stream = sys.__stdout__
    if stream is not None and stream is sys.stdout:
        sys.stdout = StandardOutput(stream.buffer, stream.encoding, stream.errors, line_buffering=stream.line_buffering)


def discard(stream: Any) -> None:
    """Send what a stream still holds nowhere."""
    handle = os.open(os.devnull, os.O_WRONLY)
    os.dup2(handle, stream.fileno())
    os.close(handle)
