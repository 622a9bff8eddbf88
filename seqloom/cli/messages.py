"""What a command tells a person, and how it fails: one line on standard error, exit code 2."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import NoReturn

from seqloom.errors import SeqloomError


def note(text: str) -> None:
    """To the person, not into the pipe."""
    print(text, file=sys.stderr)


def fail(reason: str) -> NoReturn:
    note(f"seqloom: {' '.join(reason.split())}")
    sys.exit(2)


def in_one_line(run: Callable[[], None]) -> None:
    """Run; a user's mistake becomes one line and exit code 2."""
    try:
        run()
    except SeqloomError as error:
        fail(str(error))
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # the reader of our output has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:  # a full disk, a folder without write permission
        fail(f"{error.filename or 'a file'}: {error.strerror or error}")
