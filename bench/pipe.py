"""Workers: processes that prepare a job, report that they are ready, and then run one turn per request.

Both ends of the pipe are here; a message is one line of JSON. A worker may run in another environment, so this file
needs only Python.
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
Turn = Callable[[str], Message]  # order -> results, without the time
HOME = Path(__file__).parent.parent


# -- the worker's end


def serve(**tasks: Callable[[Message], Turn]) -> None:
    """Prepare the job named on the command line, then take turns until the pipe is closed."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print must not reach the pipe
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    if job["task"] not in tasks:
        sys.exit(f"this system has no task {job['task']}")
    turn = tasks[job["task"]](job)
    send(answers, {"ready": True, "peak": peak_megabytes()})
    for line in sys.stdin:
        wall, processor = time.perf_counter(), time.process_time()
        found = turn(line.rstrip("\n"))
        seconds, spent = time.perf_counter() - wall, time.process_time() - processor
        send(answers, {"seconds": seconds, "processor": spent, "peak": peak_megabytes(), **found})


def send(answers: Any, message: Message) -> None:
    print(json.dumps(message), file=answers, flush=True)


def peak_megabytes() -> float:
    """The peak memory of this process, in MB."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    except OSError:
        pass
    unit = 1 if sys.platform == "darwin" else 1024  # on Linux this includes the memory of the parent at the fork
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


# -- the driver's end


class Worker:
    """A module of bench.workers in a process of its own; `python` may be that of another environment."""

    def __init__(
        self,
        module: str,
        job: Message,
        *,
        python: Path | str = sys.executable,
        threads: int = 1,
        home: Path = HOME,  # the checkout whose worker and whose Seqloom run
    ):
        self.folder = tempfile.TemporaryDirectory(prefix="seqloom-bench-")
        self.reason = ""  # why it has stopped
        path = Path(self.folder.name)
        (path / "job.json").write_text(json.dumps(job), encoding="utf-8")
        self.errors = (path / "stderr").open("w+b")
        count = str(threads)
        self.process = subprocess.Popen(
            [str(python), "-m", f"bench.workers.{module}", str(path / "job.json")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            cwd=home,
            env={**os.environ, "OMP_NUM_THREADS": count, "MKL_NUM_THREADS": count, "TOKENIZERS_PARALLELISM": "false"},
        )
        self.ready = self.answer()

    def turn(self, order: str = "") -> Message | None:
        """The results of one turn; None if the worker has stopped."""
        if self.reason:
            return None
        try:
            assert self.process.stdin is not None
            self.process.stdin.write(f"{order}\n".encode())
            self.process.stdin.flush()
        except OSError:  # it has died since
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
