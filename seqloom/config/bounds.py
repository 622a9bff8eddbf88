"""How large the numbers of a recipe may be, by the names that many constructors share.

Beyond these no model is meant, and only building it would take minutes, or all of the memory. What else a number must
be, each constructor knows.
"""

from __future__ import annotations

from typing import Any

from seqloom.errors import SeqloomError, show

WIDTH, DEPTH, TIMES = (0, 1_000_000), (0, 200), (0, 10_000)
BOUNDS: dict[str, tuple[float, float]] = {
    **dict.fromkeys(("size", "hidden", "embedding_size", "spelling_size", "ages"), WIDTH),
    **dict.fromkeys(("layers", "hops", "glimpses"), DEPTH),
    **dict.fromkeys(("heads", "kernel", "reduce", "samples", "orders", "frequency_masks", "time_masks"), TIMES),
    "buckets": (0, 100_000_000),
    "length_ratio": (0, 1_000),
    "length_offset": (0, 1_000_000),
    "longest": (0, 1_000_000),
}


def check_bounds(name: str, value: Any, key: str) -> None:
    """Refuse a number that is out of the bounds for its name."""
    if name in BOUNDS and isinstance(value, (int, float)):
        least, most = BOUNDS[name]
        if not least <= value <= most:
            raise SeqloomError(f"{key} = {show(value)}: expected a number from {least:,} to {most:,}")
