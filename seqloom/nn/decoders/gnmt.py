"""The decoder of Google's translator: a deep stack that shares the attention of its bottom layer.

Wu et al. 2016, section 3: the bottom layer's last output is the query, a_i = attention(s_{i-1}, x), and a_i enters
every layer beside the output of the layer below; residual connections from the third layer on.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from seqloom.contracts import Attention, Cell
from seqloom.nn.attention.additive import Additive
from seqloom.nn.cells.lstm import LSTM
from seqloom.nn.decoders.bottom_attention import Bottom, BottomAttention
from seqloom.nn.layers.bridge import Kind
from seqloom.types import Padded, State


class GNMT(BottomAttention):
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
        residual: bool = True,
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
        self.residual = residual

    def input_size_above(self, below: Cell) -> int:
        return below.size + self.attention.output_size

    def run_above(self, bottom: Bottom, lengths: Tensor, state: State) -> tuple[Tensor, State]:
        values, after = bottom.outputs, {}
        for layer, cell in enumerate(self.cells[1:], start=1):
            below = self.dropout(values)
            layer_inputs = Padded(torch.cat([below, bottom.contexts], dim=-1), lengths)
            values, after[str(layer)] = cell.run(layer_inputs, state[str(layer)])
            if self.residual and layer >= 2:
                values = values + below
        return values, after
