"""A command of Seqloom in this process, with what it writes: quick, but without its time and memory."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from seqloom.cli.main import main
from tests.faults.folders import environment


@dataclass(frozen=True)
class Written:
    code: int
    out: str
    err: str


def seqloom_inside(*words: str | Path, stdin: str = "") -> Written:
    """Run `seqloom WORDS...`."""
    out, err = io.StringIO(), io.StringIO()
    given = io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8")
    code = 0
    with (
        environment(),
        patch.object(sys, "argv", ["seqloom", *map(str, words)]),
        patch.object(sys, "stdin", given),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 0
    return Written(code, out.getvalue(), err.getvalue())
