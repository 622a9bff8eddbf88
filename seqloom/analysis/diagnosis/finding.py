"""What a diagnosis finds: a sentence with figures, what to do about it, and a command to paste."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

MARKS = {"problem": "!", "hint": "-"}


@dataclass(frozen=True)
class Finding:
    name: str  # for programs
    severity: Literal["problem", "hint"]
    sentence: str
    advice: str
    command: str = ""  # empty where the advice is no command, such as to collect more data

    def __str__(self) -> str:
        return f"{MARKS[self.severity]} {self.sentence}\n  {self.advice}"


def by_severity(findings: Iterable[Finding | None]) -> list[Finding]:
    """What was found, problems first."""
    found = [finding for finding in findings if finding is not None]
    return sorted(found, key=lambda finding: list(MARKS).index(finding.severity))


def percent(share: float) -> str:
    """ "0 %", "0.4 %", "37 %"."""
    return f"{100 * share:.1f} %" if 0 < share < 0.1 else f"{100 * share:.0f} %"
