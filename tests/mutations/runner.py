"""A copy of the tree in which mistakes are made, and tests that are run there, each time in a process of its own.

The processes are forked from this one, which has imported what takes seconds to import, and nothing of Seqloom.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import sys
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import hypothesis  # noqa: F401
import numpy as np  # noqa: F401
import pytest
import torch

LEFT_OUT = shutil.ignore_patterns(".*", "results", "runs", "docs", "bench", "node_modules")
MEMORY = 6 << 30
SECONDS, ALL_SECONDS = 60, 1200.0  # that one test, and all for one mistake, may take
TIME = " (time)"  # after the name of a test that took longer
OPTIONS = ("-x", "-q", "--tb=no", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist")


class Limit:
    """A plugin of pytest: a test that takes too long ends the process, which leaves the name of the test in a file."""

    def __init__(self, path: Path):
        self.path = path

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self.path.write_text(item.nodeid)
        signal.alarm(SECONDS)
        try:
            return (yield)
        finally:
            signal.alarm(0)


class Tree:
    """A copy of the package and its tests."""

    def __init__(self, root: Path, folder: Path):
        self.path = folder / "tree"
        shutil.copytree(root, self.path, ignore=LEFT_OUT)
        torch.set_num_threads(1)

    @contextmanager
    def changed(self, path: str, text: str) -> Iterator[None]:
        """Within the block a file has another text. Its time differs too, so that no compiled file is taken for it."""
        file = self.path / path
        before, times = file.read_bytes(), file.stat()
        file.write_text(text)
        try:
            yield
        finally:
            file.write_bytes(before)
            os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))

    def test(self, tests: Sequence[str]) -> str:
        """The first test that fails or takes too long; empty if all pass."""
        missing = [test for test in tests if not (self.path / test.split("::")[0]).exists()]
        assert not missing, f"there are no tests {missing}"
        output, running = self.path.parent / "output", self.path.parent / "running"
        child = os.fork()
        if not child:
            os.setsid()
            code = 70
            try:
                code = self.run_here(tests, output, running)
            finally:
                os._exit(code)
        end = time.monotonic() + ALL_SECONDS
        while os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None and time.monotonic() < end:
            time.sleep(0.02)
        late = os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        os.killpg(child, signal.SIGKILL)  # also what a test may have left running
        _, status = os.waitpid(child, 0)
        if late:
            raise TimeoutError(f"more than {ALL_SECONDS:.0f} s for {' '.join(tests)}")
        if not status:
            return ""
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM:
            return running.read_text() + TIME
        failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", output.read_text(errors="replace"), re.MULTILINE)
        return failed[1] if failed else f"exit code {os.waitstatus_to_exitcode(status)}"

    def run_here(self, tests: Sequence[str], output: Path, running: Path) -> int:
        file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, 1)
        os.dup2(file, 2)
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        os.chdir(self.path)
        os.environ["SEQLOOM_CACHE"] = str(self.path.parent / "cache")
        os.environ["PYTHONPATH"] = str(self.path)
        sys.path[:] = [str(self.path), *(place for place in sys.path if not Path(place, "seqloom").exists())]
        sys.dont_write_bytecode = True  # compiled files were copied, too
        for name in [name for name in sys.modules if name.split(".")[0] in ("tests", "seqloom")]:
            del sys.modules[name]
        code = int(pytest.main([*OPTIONS, *tests], plugins=[Limit(running)]))
        import seqloom

        assert Path(seqloom.__file__).is_relative_to(self.path), "the tests ran elsewhere"
        sys.stdout.flush()
        return code
