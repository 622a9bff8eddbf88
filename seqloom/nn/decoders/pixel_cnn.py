"""PixelCNN: the pixels of a picture one by one, each from those before it by masked convolutions.

Plain: van den Oord, Kalchbrenner & Kavukcuoglu 2016, section 3.5; gated, in two stacks and without a blind spot: van
den Oord, Kalchbrenner, Vinyals, Espeholt, Graves & Kavukcuoglu 2016. See seqloom/nn/layers/pixel_cnn.py.
"""

from typing import Any, Literal

from seqloom.nn.decoders.canvas import CanvasDecoder
from seqloom.nn.layers.pixel_cnn import PixelCNN as Network


class PixelCNN(CanvasDecoder):
    """`layers` layers of `size`, the first with a kernel of its own; `hidden` features are what the softmax sees."""

    def __init__(
        self,
        *,
        vocabulary: int,
        canvas: tuple[int, int, int] | None,
        memory_size: int,
        bos: int,
        eos: int | None,
        style: Literal["gated", "plain"] = "gated",
        size: int = 64,
        layers: int = 8,
        kernel: int = 3,
        first_kernel: int = 7,
        embedding_size: int = 8,
        hidden: int = 64,
        dropout: float = 0.0,
    ):
        super().__init__(
            vocabulary=vocabulary,
            canvas=canvas,
            bos=bos,
            eos=eos,
            memory_size=memory_size,
            embedding_size=embedding_size,
            hidden=hidden,
            style=style,
            size=size,
            layers=layers,
            kernel=kernel,
            first_kernel=first_kernel,
            dropout=dropout,
        )

    def build_network(self, inputs: int, channels: int, condition: int, **options: Any) -> Network:
        return Network(inputs=inputs, channels=channels, condition=condition, **options)
