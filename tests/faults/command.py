"""A command of Seqloom in a process of its own, with its time and memory."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SECONDS = 20.0
MEGABYTES = 2000
EXITS = (0, 2)  # well, or a mistake in one line


@dataclass(frozen=True)
class Finished:
    """What a process left."""

    code: int  # negative: the signal that ended it
    out: bytes
    err: str
    seconds: float
    megabytes: float  # at most
    hung: bool

    def problem(self, exits: Sequence[int] = EXITS) -> str | None:
        """What must never be seen: a traceback, a hang, too much memory, another exit code, two lines for a mistake."""
        last = self.err.strip().splitlines()[-1:]
        if self.hung:
            return f"hung for {self.seconds:.0f} s"
        if "Traceback" in self.err:
            return f"a traceback: {' '.join(last)}"
        if self.megabytes > MEGABYTES:
            return f"{self.megabytes:.0f} MB"
        if self.code not in exits:
            return f"exit code {self.code}: {' '.join(last)}"
        if self.code == 2 and not (last and last[0].startswith("seqloom: ")):
            return f"exit code 2, but the last line is {last}"
        return None


def seqloom(
    *words: str | Path,
    folder: Path,
    stdin: bytes | None = b"",
    seconds: float = SECONDS,
    environment: Mapping[str, str] | None = None,
) -> Finished:
    """Run `seqloom WORDS...` in a folder, with a cache inside it and one thread. stdin None: closed."""
    own = {"SEQLOOM_CACHE": str(folder / ".cache"), "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path.cwd())}
    command = [sys.executable, "-m", "seqloom", *map(str, words)]
    if stdin is None:
        command = ["sh", "-c", 'exec "$@" <&-', "sh", *command]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, tempfile.TemporaryFile() as source:
        source.write(stdin or b"")
        source.seek(0)
        began = time.monotonic()
        child = subprocess.Popen(
            command, cwd=folder, env={**os.environ, **own, **(environment or {})}, stdin=source, stdout=out, stderr=err
        )
        hung = threading.Event()
        timer = threading.Timer(seconds, lambda: (hung.set(), child.kill()))
        timer.start()
        _, status, usage = os.wait4(child.pid, 0)
        timer.cancel()
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        return Finished(
            child.returncode,
            out.read(),
            err.read().decode(errors="replace"),
            time.monotonic() - began,
            usage.ru_maxrss / 1024,
            hung.is_set(),
        )
