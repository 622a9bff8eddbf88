"""Films to model pixel by pixel. Tables are written after the films that they name."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np

from seqloom.studies.sources.files import write_file
from seqloom.studies.sources.multi_model import read_idx
from seqloom.studies.study import Splits

SPLITS = {"train": (0, 8_000), "valid": (8_000, 200), "test": (8_200, 500)}  # the first, and how many
KNOWN, FRAMES, SPEEDS, NOISE = 8, 12, 3, 0.02  # frames that are given, of so many
DIGITS, DIGIT_SIDE, WHITE = 20, 14, 96  # height and width of a picture with a digit, and of it; grey from which on
Films = Iterator[tuple[np.ndarray, np.ndarray]]  # bool (T, H, W), and -log p of each frame (T,)


@cache
def moving_sprites(folder: Path) -> Splits:
    return written(folder, "sprites")


@cache
def moving_digits(folder: Path) -> Splits:
    return written(folder, "digits")


def written(folder: Path, kind: str) -> Splits:
    home, made = folder / f"moving-{kind}", []
    for split in SPLITS:
        table = home / f"{split}.txt"
        if not table.exists():
            (home / split).mkdir(parents=True, exist_ok=True)
            names = []
            for number, (film, _) in enumerate(films(kind, split)):
                names.append(f"{split}/{number:05}.npz")
                np.savez_compressed(home / names[-1], frames=film.astype(np.uint8) * 255)
            write_file(home, table.name, "".join(f"{name}\n" for name in names))
        made.append([str(table)])
    return Splits(*made)


def films(kind: str, split: str) -> Films:
    """Sprites, or digits of MNIST half as large, which bounce off the walls."""
    from seqloom.data.generators.sprites import SHAPES, drawn, moving

    first, count = SPLITS[split]
    every = [drawn(name) for name in SHAPES] if kind == "sprites" else small_digits(split)
    size = 16 if kind == "sprites" else DIGITS
    for number in range(first, first + count):
        yield moving(every, (1, number), FRAMES, size, SPEEDS, NOISE)[1:]


@cache
def small_digits(split: str) -> list[np.ndarray]:
    """Those of the test set for the test.  bool (14, 14) each"""
    pictures = read_idx(f"{'t10k' if split == 'test' else 'train'}-images-idx3-ubyte.gz")
    halves = pictures.reshape(len(pictures), DIGIT_SIDE, 2, DIGIT_SIDE, 2).mean((2, 4)) >= WHITE
    return list(halves)


def own_nats(kind: str) -> float:
    """The entropy of a frame of the test set, in nats: no model can need fewer on the average."""
    return float(np.mean([nats[KNOWN:] for _, nats in films(kind, "test")]))
