"""Parity: a vector of 1, -1 and 0, and whether the number of its ones is odd: "1,0,-1,1" -> "0".

Graves 2016, section 3.1, for adaptive computation time: all is read at once, and the more components are not 0, the
harder it is.
"""

from __future__ import annotations

import numpy as np

from seqloom.data.generators.sampling import check_range
from seqloom.types import Example


def parity(
    count: int, seed: int = 1, *, size: int = 16, fewest: int = 1, most: int = 0, easy: bool = False
) -> list[Example]:
    """`count` vectors with `fewest` to `most` components that are not 0 (`most` = 0: all), all numbers equally likely.

    With `easy`, vectors with k such components are drawn in proportion to 1/k, so that easy ones are frequent. Vectors
    may repeat. A smaller count gives the first of them.
    """
    most = most or size
    check_range("parity", "count", count, 1)
    check_range("parity", "size", size, 1)
    check_range("parity", "fewest", fewest, 1, size)
    check_range("parity", "most", most, fewest, size)
    random = np.random.default_rng(seed)
    numbers = np.arange(fewest, most + 1)
    chances = 1 / numbers if easy else np.ones(len(numbers))
    return [draw(random, size, numbers, chances / chances.sum()) for _ in range(count)]


def draw(random: np.random.Generator, size: int, numbers: np.ndarray, chances: np.ndarray) -> Example:
    vector = np.zeros(size, dtype=int)
    places = random.permutation(size)[: random.choice(numbers, p=chances)]
    vector[places] = random.choice([1, -1], len(places))
    return Example(",".join(map(str, vector.tolist())), str((vector == 1).sum() % 2))
