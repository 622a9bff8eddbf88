"""Published data on points."""

from __future__ import annotations

import gzip
from pathlib import Path

from seqloom.studies.sources.files import data_set, write_file


def published_hulls(folder: Path) -> list[str]:
    """The test file of Vinyals et al. 2015 for five points: x1 y1 ... x5 y5 output i j k i, places from 1 on."""
    lines = []
    with gzip.open(data_set("ptrnet-convex-hull", "convex_hull_5_test.txt.gz"), "rt", encoding="ascii") as file:
        for line in file:
            numbers, _, places = line.partition(" output ")
            words = numbers.split()
            points = " ".join(map(",".join, zip(words[::2], words[1::2])))
            lines.append(f"{points}\t{' '.join(str(int(place) - 1) for place in places.split())}\n")
    return write_file(folder, "published-hulls.tsv", "".join(lines))
