"""Run a command and print its time and memory: `python -S -m bench.launching '[["ls"], "stdin"]'`.

In a small process of its own: on Linux the peak memory of a child is at least that of its parent.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time


def main() -> None:
    words, text = json.loads(sys.argv[1])
    begin = time.perf_counter()
    found = subprocess.run(words, input=text.encode(), capture_output=True)
    seconds = time.perf_counter() - begin
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    lines = found.stderr.decode(errors="replace").strip().splitlines()
    failed = (lines or [f"exit status {found.returncode}"])[-1] if found.returncode else ""
    peak = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6
    spent = used.ru_utime + used.ru_stime
    print(json.dumps({"seconds": seconds, "processor": spent, "peak": peak, "failed": failed}))


if __name__ == "__main__":
    main()
