"""A call in this process that is given hostile input: it must be fine, or an error in one line, in time and memory."""

from __future__ import annotations

import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from seqloom.errors import SeqloomError, steers

SECONDS, MEGABYTES = 20, 500
LONGEST = 2000  # characters of an error


class TooLongError(Exception):
    pass


def problem_of(call: Callable[[], str | None]) -> str | None:
    """What must never be seen, or what the call itself says is wrong with its result."""
    before = peak()
    try:
        with limited(SECONDS):
            problem = call()
    except SeqloomError as error:
        problem = f"says {str(error)[:300]!r}" if any(map(steers, str(error))) or len(str(error)) > LONGEST else None
    except OSError as error:  # which a command reports in one line, if it has a name
        problem = None if error.filename else repr(error)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a panic in Rust is no Exception
        problem = f"{type(error).__name__}: {error}"
    more = peak() - before
    return problem or (f"took {more} MB" if more > MEGABYTES else None)


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        raise TooLongError(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def peak() -> int:
    """Of the memory of this process, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
