"""What a search recorded step by step: it grows at its end without being copied, and keeps no small arrays.

Small arrays that stay, among the large ones that every step makes and frees, would keep the allocator from reusing that
memory: an output of 10,000 tokens for a source of 5,000 took 4 GB, where no array of that size was left.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from seqloom.arrays import Array, as_numpy, namespace

Packed = tuple[bytes, str, tuple[int, ...]]  # the values of an array, their type and shape


@dataclass(frozen=True, eq=False, repr=False)
class Trail:
    """The arrays of the last step, and the trail before it, which other trails may share."""

    before: Trail | None = None
    step: tuple[Any, ...] = ()
    length: int = 0

    def add(self, *arrays: Array | None) -> Trail:
        return Trail(self, tuple(map(pack, arrays)), self.length + 1)

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[list[Any]]:
        """The arrays of each step, from the first to the last."""
        steps, here = [], self
        while here.before is not None:
            steps.append(here.step)
            here = here.before
        return ([unpack(each) for each in step] for step in reversed(steps))

    def stack(self) -> Array:
        """One array of steps that recorded one array each.  n times (rows,) -> (rows, n)"""
        columns = [column for (column,) in self]
        return namespace(columns[0]).stack(columns, 1)


def pack(array: Array | None) -> Any:
    """An array as bytes, which Python keeps apart; one on an accelerator stays there, as fetching it would stall it."""
    if array is None or str(array.device) != "cpu":
        return array
    values = as_numpy(array)
    return values.tobytes(), values.dtype.str, values.shape


def unpack(packed: Any) -> Any:
    return np.frombuffer(packed[0], packed[1]).reshape(packed[2]) if isinstance(packed, tuple) else packed
