"""A picture or a film as a source: what the encoder was given, and the places or frames that its states stand for."""

from __future__ import annotations

from base64 import b64encode
from math import ceil

import numpy as np

from seqloom.explain.record import Image
from seqloom.inference.system import System, pieces
from seqloom.types import Composite, Encoded

FRAMES = 12  # of a film in one row


def source_image(system: System, encoded: Encoded | None) -> Image | None:
    """The picture of an encoded source; None if the encoder reads something else."""
    codec, encoder = system.task.source, system.model.encoder
    if codec is None or encoded is None or codec.shape is None:
        return None
    if codec.moving:
        frames = encoded.values if isinstance(encoded, Composite) else encoded  # (T, H, W, C)
        if not len(frames) or not encoder.one_state_per_token:
            return None
        columns = min(len(frames), FRAMES)
        height, width, _ = codec.shape
        names = pieces(codec, frames)
        return Image(
            as_uri(codec.picture(sheet(frames, columns))), ceil(len(frames) / columns), columns, names, width / height
        )
    if encoder.grid is None:
        return None
    rows, columns = encoder.grid
    return Image(as_uri(codec.picture(encoded)), rows, columns)


def sheet(frames: np.ndarray, columns: int) -> np.ndarray:
    """Frames side by side, row below row, black after the last.  (T, H, W, C) -> (rows * H, columns * W, C)"""
    _, height, width, channels = frames.shape
    rows = ceil(len(frames) / columns)
    filled = np.zeros((rows * columns, height, width, channels), dtype=np.uint8)
    filled[: len(frames)] = frames
    grid = filled.reshape(rows, columns, height, width, channels).transpose(0, 2, 1, 3, 4)
    return grid.reshape(rows * height, columns * width, channels)


def as_uri(picture: bytes) -> str:
    return f"data:image/png;base64,{b64encode(picture).decode()}"
