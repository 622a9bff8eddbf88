"""A picture as a source: what the encoder was given, and the grid of places that its states stand for."""

from __future__ import annotations

from base64 import b64encode

import numpy as np

from seqloom.explain.record import Image
from seqloom.inference.system import System


def source_image(system: System, encoded: np.ndarray | None) -> Image | None:
    """The picture of an encoded source; None if the encoder reads something else."""
    codec, grid = system.task.source, getattr(system.model.encoder, "grid", None)
    if codec is None or encoded is None or codec.shape is None or grid is None:
        return None
    rows, columns = grid
    picture = b64encode(codec.picture(encoded)).decode()
    return Image(f"data:image/png;base64,{picture}", rows, columns)
