"""Films: an encoder of pictures reads windows of frames, an encoder of vectors what it made of them ("Watch").

Chung, Senior, Vinyals & Zisserman 2017, section 3.1: a convolutional network sees five frames at a time, as channels of
one picture, and an LSTM reads its vectors from the last to the first. A window is a frame and those before it, so that
films can be read as they arrive where the encoder of vectors can; the first frame is repeated before the beginning.
    v_t = summary of the pictures(x_(t-4) .. x_t)        states = encoder(v_1 .. v_T)
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from seqloom.contracts import Encoder
from seqloom.nn.encoders.image import Image
from seqloom.nn.encoders.recurrent import Recurrent
from seqloom.types import Memory, Padded, State

FROM_THE_END = partial(Recurrent, reverse=True)


class Video(Encoder):
    """Frames (B, T, H, W, C), from 0 to 255 -> the states of `encoder`, which reads one vector per frame.

    `image` is an encoder of pictures, whose summary of a window of `window` frames is the vector of the last of them.
    """

    modality = ()
    reads = "films"

    def __init__(
        self,
        *,
        shape: tuple[int, int, int],
        window: int = 5,
        image: Callable[..., Encoder] = Image,
        encoder: Callable[..., Encoder] = FROM_THE_END,
    ):
        super().__init__()
        if not 1 <= window <= 100:
            raise ValueError(f"window = {window}: expected 1 to 100 frames")
        height, width, channels = shape
        self.window, self.shape = window, shape
        self.image = image(shape=(height, width, channels * window))
        if self.image.reads != "pictures":
            raise ValueError('image reads single windows: take an encoder of pictures, such as "image"')
        self.encoder = encoder(features=self.image.output_size)
        self.output_size, self.stride = self.encoder.output_size, self.encoder.stride

    def count_states(self, length: int) -> int:
        return self.encoder.count_states(length)

    def forward(self, source: Padded, attention: bool = False) -> Memory:
        return self.encoder(self.read_windows(source), attention)

    @property
    def streams(self) -> bool:
        return self.encoder.streams

    def start(self, rows: int) -> State:
        """The frames that the next windows begin with, none before the first; and the state of the encoder."""
        if not self.streams:
            return super().start(rows)
        frames = torch.zeros(rows, 0, *self.shape, dtype=torch.uint8, device=next(self.parameters()).device)
        return {"frames": frames, "encoder": self.encoder.start(rows)}

    def extend(self, chunk: Padded, state: State, closed: bool) -> tuple[Memory, State]:
        if not self.streams:
            return super().extend(chunk, state, closed)
        before = state["frames"].shape[1]
        frames = torch.cat([state["frames"], chunk.values], dim=1)
        vectors = self.read_windows(Padded(frames, chunk.lengths + before), before)
        memory, after = self.encoder.extend(vectors, state["encoder"], closed)
        kept = frames[:, max(frames.shape[1] - self.window + 1, 0) :].clone()
        return memory, {"frames": kept, "encoder": after}

    def read_windows(self, source: Padded, first: int = 0) -> Padded:
        """The vector of each frame from the one of number `first` on.  (B, T, H, W, C) -> (B, T - first, size)"""
        frames, lengths = source.values, source.lengths - first
        rows, times = Padded(frames[:, first:], lengths).mask.nonzero(as_tuple=True)  # (N,): padding is not read
        seen = window_frames(times + first, self.window)  # (N, window)
        windows = frames[rows[:, None], seen].permute(0, 2, 3, 1, 4).flatten(3)  # (N, H, W, window * C)
        vectors = self.read_pictures(windows)
        values = vectors.new_zeros(len(frames), frames.shape[1] - first, vectors.shape[-1])
        return Padded(values.index_put((rows, times), vectors), lengths)

    def read_pictures(self, windows: Tensor) -> Tensor:
        """(N, H, W, C) -> (N, size)"""
        if not len(windows):
            return next(self.parameters()).new_zeros(0, self.image.output_size)
        heights = torch.full((len(windows),), windows.shape[1], device=windows.device)
        summary: Tensor = self.image(Padded(windows, heights)).final["summary"]
        return summary


def window_frames(last: Tensor, window: int) -> Tensor:
    """The frames of the windows that end with these; the first one in place of those before it.  (N,) -> (N, window)"""
    return (last[:, None] + torch.arange(1 - window, 1, device=last.device)).clamp(min=0)
