"""The decoder of Deep-Att: attention in the bottom layer, fast-forward connections through all layers.

Zhou et al. 2016, section 3.2: the context enters the bottom layer alone; each layer above reads [Half(f); h] of the one
below (seqloom/nn/layers/fast_forward.py). The softmax reads h of the top layer.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from seqloom.contracts import Attention, Cell
from seqloom.nn.attention.additive import Additive
from seqloom.nn.cells.lstm import LSTM
from seqloom.nn.decoders.bottom_attention import Bottom, BottomAttention
from seqloom.nn.layers.bridge import Kind
from seqloom.nn.layers.fast_forward import fast_forward, fast_forward_size, run_fast_forward
from seqloom.types import Padded, State


class DeepAtt(BottomAttention):
    """State: {"layers": cells, "attention": the attention's}. Only the bottom layer is unrolled in training."""

    def __init__(
        self,
        *,
        vocabulary: int,
        memory_size: int,
        bos: int,
        eos: int | None,
        embedding_size: int = 256,
        size: int = 256,
        layers: int = 4,
        cell: Callable[..., Cell] = LSTM,
        attention: Callable[..., Attention] = Additive,
        bridge: Kind = "dense",
        dropout: float = 0.0,
        tied: bool = False,
        length_ratio: float = 2.0,
        length_offset: int = 10,
    ):
        super().__init__(
            vocabulary=vocabulary,
            memory_size=memory_size,
            bos=bos,
            eos=eos,
            embedding_size=embedding_size,
            size=size,
            layers=layers,
            cell=cell,
            attention=attention,
            bridge=bridge,
            dropout=dropout,
            tied=tied,
            lengths=(length_ratio, length_offset),
        )

    def input_size_above(self, below: Cell) -> int:
        return fast_forward_size(below)

    def run_above(self, bottom: Bottom, lengths: Tensor, state: State) -> tuple[Tensor, State]:
        if len(self.cells) == 1:
            return bottom.outputs, {}
        names = [str(layer) for layer in range(1, len(self.cells))]
        values = fast_forward(torch.stack(bottom.projected, dim=1), self.dropout(bottom.outputs))
        states = [state[name] for name in names]
        outputs, _, after = run_fast_forward(self.cells[1:], Padded(values, lengths), states, self.dropout)
        return outputs, dict(zip(names, after))
