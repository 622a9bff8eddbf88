"""Tags from random tables, one per key: "k2 r7 c3 c31" -> "- - t4 t11", from table 2, row 7, columns 3 and 31.

The tables have to be learned by heart: a test of mixtures of experts, whose gate can give each key to other experts.
They depend on `tables` alone, so examples of all seeds have the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from seqloom.data.generators.sampling import check_range, distinct
from seqloom.types import Example


def piecewise(
    count: int, seed: int = 1, *, keys: int = 16, size: int = 24, tags: int = 16, length: int = 14, tables: int = 1
) -> list[Example]:
    """`count` distinct sources of a key, a row and `length` columns of square tables, all equally likely.

    A smaller count gives the first of them.
    """
    for name, value in (("keys", keys), ("size", size), ("tags", tags)):
        check_range("piecewise", name, value, 2)
    check_range("piecewise", "length", length, 1)
    check_range("piecewise", "tables", tables, 0)
    check_range("piecewise", "count", count, 1, max(keys * size ** (length + 1) // 4, 1))
    table = np.random.default_rng(tables).integers(tags, size=(keys, size, size))
    return list(islice(distinct(draws(seed, table, length)), count))


def draws(seed: int, table: np.ndarray, length: int) -> Iterator[Example]:
    """Examples without end, not all distinct."""
    random = np.random.default_rng(seed)
    keys, size, _ = table.shape
    while True:
        key, row, columns = random.integers(keys), random.integers(size), random.integers(size, size=length)
        source = " ".join([f"k{key}", f"r{row}", *(f"c{column}" for column in columns)])
        yield Example(source, " ".join(["-", "-", *(f"t{tag}" for tag in table[key, row, columns])]))
