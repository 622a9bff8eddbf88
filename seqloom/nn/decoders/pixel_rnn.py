"""PixelRNN: the pixels of a picture one by one, each from LSTMs over the lines above it or along its diagonals.

van den Oord, Kalchbrenner & Kavukcuoglu 2016, sections 3.2 and 3.3. See seqloom/nn/layers/pixel_rnn.py.
"""

from typing import Any, Literal

from seqloom.nn.decoders.canvas import CanvasDecoder
from seqloom.nn.layers.pixel_rnn import PixelRNN as Network


class PixelRNN(CanvasDecoder):
    """A masked convolution and `layers` layers of LSTMs; of style "row" they read the line above through `kernel`."""

    def __init__(
        self,
        *,
        vocabulary: int,
        canvas: tuple[int, int, int] | None,
        memory_size: int,
        bos: int,
        eos: int | None,
        style: Literal["row", "diagonal"] = "diagonal",
        size: int = 64,
        layers: int = 2,
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
