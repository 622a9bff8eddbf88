"""Music by rule: chords of a random key in a common progression, an arpeggio above: "48,52,55,60 48,52,55,64 ...".

Each chord lasts four steps; the melody plays its notes in an order of its own, and sometimes rests. For trials without
a data set.
"""

from __future__ import annotations

import numpy as np

from seqloom.data.generators.sampling import check_range
from seqloom.types import Example

SCALE = (0, 2, 4, 5, 7, 9, 11)  # major, in semitones
PROGRESSIONS = ((0, 3, 4, 0), (0, 5, 3, 4), (0, 4, 5, 3), (1, 4, 0, 0))
STEPS = 4  # of a chord
REST = 0.1


def chords(count: int, seed: int = 1, *, length: int = 32) -> list[Example]:
    """`count` pieces of `length` steps; a smaller count gives the first of them."""
    check_range("chords", "count", count, 1)
    check_range("chords", "length", length, 1, 10_000)
    random = np.random.default_rng(seed)
    return [Example(None, " ".join(piece(random, length))) for _ in range(count)]


def piece(random: np.random.Generator, length: int) -> list[str]:
    """The steps of one piece, as texts."""
    root, progression = int(random.integers(43, 55)), PROGRESSIONS[random.integers(len(PROGRESSIONS))]
    steps: list[str] = []
    while len(steps) < length:
        degree = progression[len(steps) // STEPS % len(progression)]
        triad = [root + SCALE[(degree + third) % 7] + 12 * ((degree + third) // 7) for third in (0, 2, 4)]
        for note in random.permutation([*triad, triad[0] + 12])[:STEPS].tolist():
            melody = [] if random.random() < REST else [note + 12]
            steps.append(",".join(map(str, sorted({*triad, *melody}))))
    return steps[:length]
