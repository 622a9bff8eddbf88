"""Checkpoints of a run folder: their files, and checksums that tell whether these are still what was written."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from seqloom.errors import SeqloomError
from seqloom.storage import weights
from seqloom.storage.files import read_json
from seqloom.storage.weights import Weights

CHECKSUMS = "checksums.json"


def checksum(content: bytes | Path) -> str:
    """BLAKE2b of some bytes, or of a file."""
    with BytesIO(content) if isinstance(content, bytes) else content.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


@dataclass(frozen=True)
class Checkpoint:
    """A complete checkpoint: all that a training needs to go on from this step."""

    path: Path

    @property
    def step(self) -> int:
        return int(self.path.name.removeprefix("step-"))

    def model(self) -> Weights:
        return weights.read(self.verified("model.safetensors"))

    def optimiser(self) -> Weights:
        return weights.read(self.verified("optimiser.safetensors"))

    def trainer(self) -> dict[str, Any]:
        return read_json(self.verified("trainer.json"))

    def verified(self, name: str) -> Path:
        """The path of a file, whose content is what was written; of old checkpoints, that is not known."""
        path, sums = self.path / name, self.path / CHECKSUMS
        if sums.is_file() and path.is_file() and read_json(sums).get(name) != checksum(path):
            raise SeqloomError(
                f"{path} is damaged: its checksum is not that of {CHECKSUMS}; restore it from a copy of the run"
            )
        return path

    def damage(self) -> str:
        """Why it cannot be used, in one line; empty if it can."""
        try:
            self.model(), self.optimiser(), self.trainer()
        except SeqloomError as error:
            return str(error)
        return ""
