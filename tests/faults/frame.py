"""How attacks are found, made and counted."""

from __future__ import annotations

import pkgutil
import tempfile
import time
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.faults import attacks

NAMES = sorted(module.name for module in pkgutil.iter_modules(attacks.__path__))


def about(name: str) -> str:
    return (import_module(f"tests.faults.attacks.{name}").__doc__ or "").splitlines()[0]


def rounds(name: str, short: bool) -> int:
    module = import_module(f"tests.faults.attacks.{name}")
    return int(module.SHORT if short else module.LONG)


def make(name: str, numbers: Iterable[int], say: Callable[[str], None] = lambda line: None) -> dict[str, Any]:
    """Make attacks of one kind; an exception inside one counts as giving way."""
    attack = import_module(f"tests.faults.attacks.{name}").attack
    began, made, gave_way = time.monotonic(), 0, []
    for number in numbers:
        with tempfile.TemporaryDirectory(prefix="seqloom-") as folder:
            try:
                problem = attack(number, Path(folder))
            except Exception as error:
                problem = f"{type(error).__name__}: {error}"
        made += 1
        if problem:
            gave_way.append(f"{number}: {' '.join(problem.split())[:500]}")
            say(f"{name} {gave_way[-1]}")
    return {"made": made, "gave_way": gave_way, "seconds": round(time.monotonic() - began, 1)}
