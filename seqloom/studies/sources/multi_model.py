"""Four tasks for one model: trees of sentences, sounds of words, sums, digits as pictures."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np

from seqloom.studies.sources.files import data_set, write_file
from seqloom.studies.sources.generators import examples_of
from seqloom.studies.sources.pairs import tenth_of_cmudict
from seqloom.studies.sources.treebank import treebank_trees
from seqloom.studies.study import Splits

PATCH = 7  # pixels: a digit of 28 x 28 is 16 patches, each a vector
DIGITS = {"train": ("train", 0, 6_000), "valid": ("train", 6_000, 6_500), "test": ("t10k", 0, 2_000)}


@cache
def four_tasks(folder: Path) -> Splits:
    parts = {"trees": treebank_trees(folder), "letters": tenth_of_cmudict(folder), "digits": digits(folder)}
    parts["sums"] = examples_of("addition", 5_000, 500)(folder)
    return Splits([], None, [], tasks=parts)


def one_task(name: str) -> Callable[[Path], Splits]:
    """One of them alone."""

    @cache
    def make(folder: Path) -> Splits:
        return Splits([], None, [], tasks={name: four_tasks(folder).tasks[name]})

    return make


def digits(folder: Path) -> Splits:
    """Digits of MNIST as patches: 16 vectors of 49 numbers from 0 to 1, row by row."""
    files = []
    for split, (name, begin, end) in DIGITS.items():
        pictures, labels = (read_idx(f"{name}-{kind}-ubyte.gz") for kind in ("images-idx3", "labels-idx1"))
        rows = zip(patches(pictures[begin:end]), labels[begin:end].tolist())
        lines = (json.dumps({"source": picture, "target": str(label)}) for picture, label in rows)
        files.append(write_file(folder, f"digits-{split}.jsonl", "".join(f"{line}\n" for line in lines)))
    return Splits(*files)


def read_idx(name: str) -> np.ndarray:
    """An array in the format of MNIST: two zeros, a type, the number of axes, their sizes, bytes."""
    content = gzip.decompress(data_set("mnist", name).read_bytes())
    axes = content[3]
    shape = np.frombuffer(content, ">i4", axes, offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * axes).reshape(shape)


def patches(pictures: np.ndarray) -> Iterator[list[list[float]]]:
    """(N, H, W) bytes -> for each picture its patches, each a list of numbers."""
    count, height, width = pictures.shape
    cut = pictures.reshape(count, height // PATCH, PATCH, width // PATCH, PATCH).swapaxes(2, 3)
    for picture in cut.reshape(count, -1, PATCH * PATCH) / 255:
        yield np.round(picture, 2).tolist()
