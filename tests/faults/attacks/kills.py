"""A training killed at any moment, or without power, and resumed, ends as an undisturbed one does."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

from tests.faults.training import ENDED, Training, reference, share

SHORT, LONG = 4, 100
KINDS = ("kill", "power", signal.SIGTERM, signal.SIGINT, signal.SIGKILL)


def plan(number: int, turn: int) -> dict[str, Any]:
    """A fifth of the attacks each: killed at some call, without power at some call, three signals at some time."""
    kind, place = KINDS[number % len(KINDS)], share(number + 50 * turn)
    if isinstance(kind, str):
        return {"kind": kind, "at": 1 + int(place * reference().calls)}
    return {"kind": "signal", "signal": int(kind), "at": place * reference().seconds}


def attack(number: int, folder: Path) -> str | None:
    training = Training(folder)
    for turn in range(2 if number // len(KINDS) % 2 else 1):  # in every other round the resumed training is killed, too
        ended = training.train(**plan(number, turn))
        if problem := ended.problem(ENDED):
            return f"{plan(number, turn)}: {problem}"
    if problem := training.finish():
        return f"{plan(number, 0)}: {problem}"
    return None
