"""A worker is a process that prepares, says ready, and then takes a turn whenever it is told to.

Both ends of the pipe are here, one line of JSON a message. A worker may live in another environment than ours, so this
file needs nothing but Python.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Message = dict[str, Any]
Turn = Callable[[str], Message]  # given what to do, what was found beside the time
HOME = Path(__file__).parent.parent


# -- the worker's end


def serve(**tasks: Callable[[Message], Turn]) -> None:
    """Prepare the job named on the command line, then take turns until the driver hangs up."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no message
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    if job["task"] not in tasks:
        sys.exit(f"there is no way here to {job['task']} with it")
    turn = tasks[job["task"]](job)
    say(answers, {"ready": True, "peak": peak_megabytes()})
    for line in sys.stdin:
        wall, processor = time.perf_counter(), time.process_time()
        found = turn(line.rstrip("\n"))
        seconds, spent = time.perf_counter() - wall, time.process_time() - processor
        say(answers, {"seconds": seconds, "processor": spent, "peak": peak_megabytes(), **found})


def say(answers: Any, message: Message) -> None:
    print(json.dumps(message), file=answers, flush=True)


def peak_megabytes() -> float:
    """The most memory this process has had, in MB."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    except OSError:
        pass
    unit = 1 if sys.platform == "darwin" else 1024  # on Linux it would count what our parent had when it forked
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


# -- the driver's end


class Worker:
    """A module of bench.workers in a process of its own; with `python` that of another environment."""

    def __init__(
        self,
        module: str,
        job: Message,
        *,
        python: Path | str = sys.executable,
        threads: int = 1,
        checkout: Path | None = None,  # where to take Seqloom from, if not from here
    ):
        self.folder = tempfile.TemporaryDirectory(prefix="seqloom-bench-")
        self.reason = ""  # why it takes no turns any more
        path = Path(self.folder.name)
        if checkout:
            (path / "bench").symlink_to(HOME / "bench")
            (path / "seqloom").symlink_to(checkout.resolve() / "seqloom")
        (path / "job.json").write_text(json.dumps(job), encoding="utf-8")
        self.errors = (path / "stderr").open("w+b")
        count = str(threads)
        self.process = subprocess.Popen(
            [str(python), "-m", f"bench.workers.{module}", str(path / "job.json")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            cwd=path if checkout else HOME,
            env={**os.environ, "OMP_NUM_THREADS": count, "MKL_NUM_THREADS": count, "TOKENIZERS_PARALLELISM": "false"},
        )
        self.ready = self.answer()

    def turn(self, order: str = "") -> Message | None:
        """What one turn found, or None where there is none to be had."""
        if self.reason:
            return None
        try:
            assert self.process.stdin is not None
            self.process.stdin.write(f"{order}\n".encode())
            self.process.stdin.flush()
        except OSError:  # it has died in between
            pass
        return self.answer()

    def answer(self) -> Message | None:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if line:
            message: Message = json.loads(line)
            return message
        self.process.wait()
        self.errors.seek(0)
        lines = self.errors.read().decode(errors="replace").strip().splitlines()
        self.reason = lines[-1] if lines else f"exit status {self.process.returncode}"
        return None

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.errors.close()
        self.folder.cleanup()
