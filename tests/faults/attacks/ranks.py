"""One of two processes killed or stopped: the other ends in time and names it, and a resume ends as one process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import safetensors.numpy

from tests.faults.training import Training, reference, share

SHORT, LONG = 1, 20
SECONDS = 30.0  # after which nothing may still run: three of them are train.timeout
TOLERANCE = 1e-5


def attack(number: int, folder: Path) -> str | None:
    training = Training(folder)
    stops, rank = number % 2 == 0, number // 2 % 2
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += ["-m", "seqloom", *training.words]
    own = {"SEQLOOM_CACHE": str(training.root / ".cache"), "OMP_NUM_THREADS": "1"}
    own["PYTHONPATH"] = f"{training.shim}:{Path.cwd()}"
    (training.shim / "sitecustomize.py").write_text(REPORT)
    errors = folder / "errors"
    with errors.open("wb") as file:
        child = subprocess.Popen(command, cwd=training.root, env={**os.environ, **own}, stdout=file, stderr=file)
        try:
            wait_for_lines(training, 1 + int(share(number) * 12))
            victim = int((training.shim / f"rank-{rank}").read_text())
            began = time.monotonic()
            os.kill(victim, signal.SIGSTOP if stops else signal.SIGKILL)
            while child.poll() is None and time.monotonic() - began < SECONDS:
                time.sleep(0.05)
                if stops and b"has not answered" in errors.read_bytes():
                    os.kill(victim, signal.SIGKILL)  # else torchrun waits another half minute for it
                    stops = False
            hung = child.poll() is None
        finally:
            child.kill()
            child.wait()
    said = errors.read_text()
    if hung:
        return f"still running after {SECONDS:.0f} s: {said[-300:]}"
    if child.returncode == 0:
        return None if number % 2 else "a stopped process was not noticed"  # the training ended before the kill
    if f"process {rank + 1} of 2" not in said:
        return f"process {rank + 1} was not named: {said[-300:]}"
    if problem := training.train().problem((0,)):
        return problem
    return distance(training)


def wait_for_lines(training: Training, count: int) -> None:
    metrics, deadline = training.run / "metrics.jsonl", time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        if metrics.exists() and metrics.read_bytes().count(b"\n") >= count:
            return
        time.sleep(0.002)
    raise RuntimeError("no training began")


def distance(training: Training) -> str | None:
    """The weights must be those of one process, but for rounding."""
    ours, theirs = (safetensors.numpy.load_file(each.run / "model.safetensors") for each in (training, reference()))
    worst = max(float(abs(ours[name] - theirs[name]).max()) for name in theirs)
    return f"weights differ by {worst:.1e} from those of one process" if worst > TOLERANCE else None


REPORT = """
import os
from pathlib import Path
if "RANK" in os.environ:
    (Path(__file__).parent / f"rank-{os.environ['RANK']}").write_text(str(os.getpid()))
"""
