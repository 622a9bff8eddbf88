"""What all generators need: distinct sources, and settings within their range."""

from __future__ import annotations

from collections.abc import Iterator

from seqloom.errors import SeqloomError
from seqloom.types import Example


def distinct(examples: Iterator[Example]) -> Iterator[Example]:
    """Each source once, so that what is held out is not in the training data."""
    seen: set[str] = set()
    for example in examples:
        if example.source not in seen:
            seen.add(example.source)
            yield example


def check_range(generator: str, key: str, value: float, least: float, most: float | None = None) -> None:
    """Refuse a number outside its range."""
    if value < least or (most is not None and value > most):
        range_ = f"{least:,} or more" if most is None else f"{least:,} to {most:,}"
        raise SeqloomError(f"{generator}: {key} is {value:,}, expected {range_}; ask for a number in that range")
