"""Prepared batches as every worker reads them: concatenated tokens in one file, padded when they are used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from bench.shapes import BOS, EOS, PAD


@dataclass(frozen=True)
class PaddedBatch:
    """Rows of similar length, padded on the right."""

    source: Tensor  # (B, T)
    source_lengths: Tensor  # (B,)
    inputs: Tensor  # (B, U): BOS y1 .. yn
    targets: Tensor  # (B, U): y1 .. yn EOS
    target_lengths: Tensor  # (B,), EOS included

    @property
    def tokens(self) -> int:
        """Target tokens without padding."""
        return int(self.target_lengths.sum())


class Batches:
    """batches.npz: source, target (tokens), lengths (N, 2), offsets (batches, 2) into the rows."""

    def __init__(self, path: Path | str):
        with np.load(path) as file:
            self.lengths, self.offsets = file["lengths"], file["offsets"]
            self.sides = [
                self.split(file[name], self.lengths[:, side]) for side, name in enumerate(("source", "target"))
            ]

    @staticmethod
    def split(tokens: np.ndarray, lengths: np.ndarray) -> list[np.ndarray]:
        return np.split(tokens.astype(np.int64), np.cumsum(lengths)[:-1])

    @property
    def tokens(self) -> int:
        """Target tokens of all batches, EOS included."""
        rows = np.concatenate([np.arange(begin, end) for begin, end in self.offsets])
        return int((self.lengths[rows, 1] + 1).sum())

    def __len__(self) -> int:
        return len(self.offsets)

    def __iter__(self) -> Iterator[PaddedBatch]:
        for begin, end in self.offsets:
            sources, targets = (side[begin:end] for side in self.sides)
            before = [np.append([BOS], target) for target in targets]
            after = [np.append(target, [EOS]) for target in targets]
            yield PaddedBatch(*stack(sources), stack(before)[0], *stack(after))


def stack(rows: list[np.ndarray]) -> tuple[Tensor, Tensor]:
    """(B, T), (B,)"""
    lengths = torch.tensor([len(row) for row in rows])
    values = np.full((len(rows), int(lengths.max())), PAD, dtype=np.int64)
    for place, row in enumerate(rows):
        values[place, : len(row)] = row
    return torch.from_numpy(values), lengths
