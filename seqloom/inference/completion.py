"""Pictures and films completed by a model of pixels: some are kept, the others drawn one after another.

Where all kept pixels come before all others, as with the top half or the first frames, completions have the
probabilities that the model gives them. Kept pixels that come later are set when their turn comes: what is drawn before
does not know them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import torch

from seqloom.data.codecs.frames import Frames
from seqloom.data.codecs.pictures import MARGIN, pixels
from seqloom.data.codecs.pixels import Pixels
from seqloom.errors import SeqloomError, UnreadableError, shown
from seqloom.inference.constraints import build_constraints, no_output
from seqloom.inference.generation import check_count
from seqloom.inference.running_text import log_probs_of
from seqloom.inference.system import System, build_search, check_given, encode_source
from seqloom.search.constraints.known import Known
from seqloom.types import Padded

HALVES = ("top", "left")
ROWS = 16  # values that are scored at once


@dataclass(frozen=True)
class Completion:
    """A picture or film, and the log-probability of the pixels that were not kept."""

    value: np.ndarray
    log_prob: float


@torch.inference_mode()
def complete_picture(
    system: System, picture: Any, *, keep: Any = None, count: int = 8, source: Any = None, **settings: Any
) -> tuple[np.ndarray, list[Completion]]:
    """What is kept, grey elsewhere, and completions of it: first the picture itself, then `count` drawn ones.

    Of a picture `keep` is "top", as by default, "left", or a mask: a picture, or an array of booleans, (H, W); of a
    film it is how many frames, by default half of them. `settings` are those of sampling.
    """
    task, model, codec = system.task, system.model, system.task.target
    if not isinstance(codec, Pixels):
        raise SeqloomError('this run writes no pixels: complete needs task.target.type = "pixels" or "frames"')
    check_given(system, source)
    check_count(count)
    for name in ("maximum_length", "minimum_length"):
        if name in settings:
            raise SeqloomError(f"{name}: a completion is as long as what it completes; leave it out")
    tokens = codec.encode(picture)  # (n,)
    if isinstance(codec, Frames):
        kept = kept_frames(codec, keep, tokens, codec.line(picture))
    else:
        kept = kept_pixels(codec, keep)
    length = {"maximum_length": len(tokens), "minimum_length": 0}  # there is no other end
    search = build_search(system, **{"type": "sample", **settings, **length})
    read = None if source is None else encode_source(system, source)
    memory = model.encode(None if read is None else model.pad([read] * count), count)
    begun = int(np.argmin(kept))  # pixels before the first that is not kept
    prefix = Padded.stack([tokens[:begun]] * count).to(model.device) if begun else None
    constraints = [*build_constraints(system, None), Known(np.where(kept, tokens, -1))]
    found = search(model.decoder, memory, prefix, constraints)
    if not all(found):
        raise no_output(codec.line(picture))
    every = np.array([tokens, *(one.tokens for one, *_ in found)])  # (1 + count, n)
    alone, counted = memory.select(torch.zeros(1, dtype=torch.long, device=model.device)), torch.from_numpy(~kept)
    values = []
    for first in range(0, len(every), ROWS):
        rows = every[first : first + ROWS]
        batch = task.batch(None, list(rows)).to(model.device)
        own = log_probs_of(model.decoder(alone, batch.inputs).scores, batch.targets.values)  # (rows, n)
        totals = (own * counted.to(own.device)).sum(1).tolist()
        values += [Completion(codec.decode(one), total) for one, total in zip(rows, totals)]
    whole = values[0].value
    return np.where(kept.reshape(whole.shape), whole, np.uint8(MARGIN)), values


def kept_frames(codec: Frames, keep: Any, tokens: np.ndarray, name: str) -> np.ndarray:
    """Which tokens of a film are kept: those of its first frames.  bool (n,)"""
    area = prod(codec.canvas)
    frames = len(tokens) // area
    if frames != codec.frames:
        raise SeqloomError(
            f"{name} has {frames} frame{'s' * (frames != 1)}; expected {codec.frames} (task.target.frames), as many as "
            "the model draws: to continue a shorter film, generate with it as the prefix"
        )
    count = codec.frames // 2 if keep is None else keep
    if isinstance(count, str) and count.strip().isdecimal():
        count = int(count)
    if not isinstance(count, (int, np.integer)) or isinstance(count, bool) or not 1 <= count < codec.frames:
        raise SeqloomError(f"keep = {shown(keep)}: expected how many frames to keep, 1 to {codec.frames - 1}")
    return np.arange(len(tokens)) < count * area


def kept_pixels(codec: Pixels, keep: Any) -> np.ndarray:
    """Which tokens of a picture are kept.  bool (n,)"""
    height, width, channels = codec.canvas
    keep = "top" if keep is None else keep
    if isinstance(keep, str) and keep in HALVES:
        mask = np.zeros((height, width), dtype=bool)
        mask[: height // 2 if keep == "top" else height, : width if keep == "top" else width // 2] = True
    elif (given := as_mask(keep)) is not None:
        mask = given
    else:
        expected = f'expected "top", "left", or a mask of {width} x {height} pixels, white where a pixel is kept'
        try:
            found = pixels(keep, mode="L", height=height, width=width, fit="exact", most=codec.max_pixels)
        except UnreadableError as error:
            reason = str(error).partition(";")[0]
            raise SeqloomError(f"keep: {reason}; {expected}") from None
        mask = found[:, :, 0] >= 128
    if mask.shape != (height, width):
        raise SeqloomError(f"keep: the mask has the shape {list(mask.shape)}; expected {[height, width]}")
    if not mask.any() or mask.all():
        what = "keeps no pixel: use generate" if not mask.any() else "keeps every pixel: there is nothing to complete"
        raise SeqloomError(f"keep: the mask {what}")
    return mask.repeat(channels)


def as_mask(keep: Any) -> np.ndarray | None:
    """Booleans, or zeros and ones, as an array; None for a picture."""
    if isinstance(keep, str) or not hasattr(keep, "__len__"):
        return None
    try:
        array = np.asarray(keep)
    except (ValueError, TypeError, RuntimeError):  # ragged, or a tensor that is elsewhere
        return None
    if array.dtype.kind in "biu" and array.size and array.min() >= 0 and array.max() <= 1:
        return array.astype(bool)
    return None
