"""Pictures to model pixel by pixel. Tables are written after the pictures that they name."""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path

from seqloom.studies.sources.files import data_set, write_file
from seqloom.studies.study import Splits

SIDE = 28


@cache  # several runs ask for it
def binary_digits(folder: Path) -> Splits:
    """Statically binarised MNIST (Larochelle & Murray 2011): 50,000, 10,000 and 10,000 pictures."""
    import numpy as np

    from seqloom.data.codecs.pictures import png

    home, made = folder / "binary-digits", []
    for split in ("train", "valid", "test"):
        table = home / f"{split}.txt"
        if not table.exists():
            with gzip.open(data_set("binarized-mnist", f"{split}.bits.gz")) as file:
                bits = np.frombuffer(file.read(), np.uint8).reshape(-1, SIDE * SIDE // 8)
            pictures = np.unpackbits(bits, axis=1).reshape(-1, SIDE, SIDE, 1) * np.uint8(255)
            (home / split).mkdir(parents=True, exist_ok=True)
            names = [f"{split}/{number:05}.png" for number in range(len(pictures))]
            for name, picture in zip(names, pictures):
                (home / name).write_bytes(png(picture))
            write_file(home, table.name, "".join(f"{name}\n" for name in names))
        made.append([str(table)])
    return Splits(*made)
