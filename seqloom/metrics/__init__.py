"""Metrics: one per file, a function with the name of the file, (predictions, references) -> {name: value}.

HIGHER_IS_BETTER is set in the file of a metric; files without it hold what metrics share.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

LOSSES = ("loss", "perplexity")  # what every validation measures, whatever its metrics


def names() -> tuple[str, ...]:
    """All metrics."""
    files = sorted(file.name for file in iter_modules(__path__))
    return tuple(name for name in files if hasattr(find(name), "HIGHER_IS_BETTER"))


def find(name: str) -> ModuleType:
    """The module of a metric."""
    return import_module(f"seqloom.metrics.{name}")


def higher_is_better(name: str) -> bool:
    """Whether higher is better, of a metric or a loss."""
    return name not in LOSSES and bool(find(name).HIGHER_IS_BETTER)
