"""TensorBoard curves, for those who installed the extra "track"."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from seqloom.errors import SeqloomError


class TensorBoard:
    def __init__(self, folder: Path, step: int):
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise SeqloomError(
                'train.tensorboard = true needs the extra "track": pip install "seqloom[track]"'
            ) from None
        self.writer = SummaryWriter(str(folder / "tensorboard"), purge_step=step + 1)

    def add(self, kind: str, step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            if math.isfinite(value):
                self.writer.add_scalar(f"{kind}/{name}", value, step)

    def close(self) -> None:
        self.writer.close()
