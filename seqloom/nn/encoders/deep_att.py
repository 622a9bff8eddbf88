"""The encoder of Deep-Att: columns of layers with fast-forward connections, read in alternating directions.

Zhou et al. 2016, section 3.2. The first column begins forwards, the second backwards, and each layer reads in the
opposite direction of the one below. The memory has [Half(f); h] of the top of each column, as in
seqloom/nn/layers/fast_forward.py; `interface_size` compresses it by a linear map.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from typing import Literal, cast

import torch
from torch import Tensor, nn

from seqloom.contracts import Cell, Encoder
from seqloom.nn.cells.lstm import LSTM
from seqloom.nn.encoders.recurrent import join_states, recurrent_memory
from seqloom.nn.layers.embedding import input_layer
from seqloom.nn.layers.fast_forward import fast_forward, fast_forward_size, run_fast_forward
from seqloom.nn.ops.dropout import Dropout
from seqloom.nn.ops.reversal import reverse_padded
from seqloom.types import Memory, Padded, State


class DeepAtt(Encoder):
    """The summary is the same vector, taken from each column where its top layer ends."""

    def __init__(
        self,
        *,
        vocabulary: int | None = None,
        features: int | None = None,
        embedding_size: int = 256,
        size: int = 256,
        layers: int = 4,
        columns: Literal[1, 2] = 2,
        cell: Callable[..., Cell] = LSTM,
        interface_size: int | None = None,
        dropout: float = 0.0,
    ):
        super().__init__()
        if layers < 1:
            raise ValueError(f"layers = {layers} must be 1 or more")
        if interface_size is not None and interface_size < 1:
            raise ValueError(f"interface_size = {interface_size} must be 1 or more")
        self.embedding = input_layer(vocabulary, features, embedding_size)
        self.dropout = Dropout(dropout)

        def column() -> nn.ModuleList:
            cells = [cell(input_size=embedding_size, size=size)]
            for _ in range(layers - 1):
                cells.append(cell(input_size=fast_forward_size(cells[-1]), size=size))
            return nn.ModuleList(cells)

        self.columns = cast(Sequence[Sequence[Cell]], nn.ModuleList(column() for _ in range(columns)))
        width = sum(fast_forward_size(cells[-1]) for cells in self.columns)
        self.output_size = width if interface_size is None else interface_size
        self.interface = nn.Identity() if interface_size is None else nn.Linear(width, interface_size)

    def forward(self, source: Padded, attention: bool = False) -> Memory:
        embedded = Padded(self.dropout(self.embedding(source.values)), source.lengths)  # (B, T, embedding_size)
        read = [self.run_column(number, embedded) for number in range(len(self.columns))]
        values, ends, states = zip(*read)
        layers = {str(layer): reduce(join_states, each) for layer, each in enumerate(zip(*states))}
        memory = recurrent_memory(self.interface(torch.cat(values, dim=-1)), source.lengths, layers)
        return replace(memory, final={**memory.final, "summary": self.interface(torch.cat(ends, dim=-1))})

    def run_column(self, number: int, inputs: Padded) -> tuple[Tensor, Tensor, list[State]]:
        """[Half(f); h] of the top at each token (B, T, width) and where it ends (B, width), and all final states."""
        cells, lengths = self.columns[number], inputs.lengths
        if number:
            inputs = Padded(reverse_padded(inputs), lengths)
        start = [cell.start(len(lengths)) for cell in cells]
        outputs, top, states = run_fast_forward(cells, inputs, start, self.dropout, alternate=True)
        values = fast_forward(cells[-1].project(top), outputs)
        end = values[torch.arange(len(lengths), device=lengths.device), lengths - 1]
        end = end.masked_fill((lengths == 0)[:, None], 0)
        if (number + len(cells)) % 2 == 0:  # the top layer reads backwards
            values = reverse_padded(Padded(values, lengths))
        return values, end, states
