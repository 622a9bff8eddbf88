"""Gates: bounds on the figures of a study."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Measures = dict[str, float]
Measured = Mapping[str, Measures]  # by the name of a variant


@dataclass(frozen=True)
class Gate:
    """A bound on one figure of a study, and where there is one, the stricter bound that was hoped for."""

    text: str
    value: Callable[[Measured], float]
    sign: str  # ">=" or "<="
    bound: float
    stricter: float | None = None

    def record(self, measured: Measured) -> dict[str, Any]:
        value = self.value(measured)
        gate, met = self.compare(value, self.bound)
        found = {"text": self.text, "gate": gate, "value": float(f"{value:.6g}"), "met": met}
        if self.stricter is not None:
            found["stricter"], found["stricter_met"] = self.compare(value, self.stricter)
        return found

    def compare(self, value: float, bound: float) -> tuple[str, bool]:
        """A bound as text, and whether a value keeps it."""
        return f"{self.sign} {bound:g}", value >= bound if self.sign == ">=" else value <= bound

    def bounds(self) -> str:
        """As text: ">= 95", or ">= 95 (>= 98)" with a stricter one."""
        stricter = "" if self.stricter is None else f" ({self.sign} {self.stricter:g})"
        return f"{self.sign} {self.bound:g}{stricter}"


def at_least(bound: float, metric: str, variant: str = "", stricter: float | None = None) -> Gate:
    return Gate(f"{variant} {metric}".strip(), lambda measured: measured[variant][metric], ">=", bound, stricter)


def at_most(bound: float, metric: str, variant: str = "", stricter: float | None = None) -> Gate:
    return Gate(f"{variant} {metric}".strip(), lambda measured: measured[variant][metric], "<=", bound, stricter)


def lead(bound: float, metric: str, better: str, worse: str, stricter: float | None = None) -> Gate:
    """One variant is better than another by at least so much."""
    text = f"{metric}, {better} minus {worse}"
    return Gate(text, lambda measured: measured[better][metric] - measured[worse][metric], ">=", bound, stricter)


def below(better: str, by: str, worse: str, than: str) -> Gate:
    """One figure is not above another, of another variant or of the same."""
    other = by if better == worse else f"{better} {by}"
    return Gate(f"{worse} {than} minus {other}", lambda measured: measured[worse][than] - measured[better][by], ">=", 0)
