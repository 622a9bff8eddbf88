"""A disk that becomes full at any write is one line that names the file, and a later resume ends as if nothing was."""

from __future__ import annotations

import re
from pathlib import Path

from tests.faults.training import ONE_LINE, Training, reference

SHORT, LONG = 1, 100


def attack(number: int, folder: Path) -> str | None:
    training = Training(folder)
    at = 1 + (37 * number + 40) % LONG * reference().calls // LONG
    ended = training.train(kind="full", at=at)
    last = ended.err.strip().splitlines()[-1:] or [""]
    if problem := ended.problem(ONE_LINE):
        return f"full at call {at}: {problem}"
    if ended.code and not re.search(r"(run|\.cache)\b.*: No space left", last[0]):
        return f"full at call {at}: the file is not named: {last[0]}"
    if problem := training.finish():
        return f"full at call {at}: {problem}"
    return None
