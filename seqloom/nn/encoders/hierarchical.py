"""Hierarchical recurrent encoder of a dialogue: an encoder of words reads each turn, a recurrent network the turns.

Sordoni et al. 2015, section 3.2, and Serban et al. 2016, section 3, who called it HRED. With w_t the words of turn t,
    u_t = summary of the words(w_t), from the same start for every turn
    s_t = cell(u_t, s_(t-1))
The states are the s_t, one per turn, and the summary is the last one, the context of the reply. HRED is this encoder
with the decoder `recurrent`: d_0 = tanh(D s + b) (bridge = "dense"), and with `feed_context` s enters every step too.
"""

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor, nn

from seqloom.contracts import Cell, Encoder, Task
from seqloom.nn.cells.gru import GRU
from seqloom.nn.encoders.recurrent import Recurrent, recurrent_memory
from seqloom.nn.layers.recurrent import RecurrentStack
from seqloom.nn.ops.dropout import Dropout
from seqloom.types import Memory, Padded

WORDS = partial(Recurrent, cell=GRU)
WIDER = 2  # within a group, the longest turn is at most so many times as long as the shortest


class Hierarchical(Encoder):
    """Reads tokens (B, T) in which EOS ends each turn, as the codec `dialogue` makes them.

    `encoder` is any encoder of tokens, which reads turns side by side, in groups of like length; `size`, `cell` and
    `layers` are those of the network over turns.
    """

    modality = ()

    def __init__(
        self,
        *,
        vocabulary: int,
        eos: int,
        encoder: Callable[..., Encoder] = WORDS,
        size: int = 256,
        cell: Callable[..., Cell] = GRU,
        layers: int = 1,
        dropout: float = 0.0,
    ):
        super().__init__()
        self.eos, self.output_size = eos, size
        self.encoder = encoder(vocabulary=vocabulary)
        self.dropout = Dropout(dropout)
        self.turns = RecurrentStack(
            cell=cell, input_size=self.encoder.output_size, size=size, layers=layers, dropout=dropout
        )

    @property
    def embedding(self) -> nn.Module | None:
        """The table of words, which a decoder may share."""
        return getattr(self.encoder, "embedding", None)

    @property
    def one_state_per_token(self) -> bool:
        return False  # but one per turn, which is what `count_states` counts

    def suit(self, task: Task) -> None:
        if task.source is None or task.source.divided != "turn":
            raise ValueError('reads the turns of a dialogue: set task.source.type = "dialogue"')

    def forward(self, source: Padded, attention: bool = False) -> Memory:
        vectors, counts = self.read_turns(source)
        begins = counts.cumsum(0) - counts  # (B,)
        places = begins[:, None] + torch.arange(int(counts.max()), device=counts.device)  # (B, S)
        inputs = Padded(self.dropout(vectors)[places.clamp(max=len(vectors) - 1)], counts)  # (B, S, D)
        states, layers = self.turns.run(inputs, self.turns.start(len(counts)))
        return recurrent_memory(states, counts, layers)

    def read_turns(self, source: Padded) -> tuple[Tensor, Tensor]:
        """The vectors of all turns (N, D), those of one source adjacent, and how many each source has (B,)."""
        real = source.mask
        last = torch.arange(real.shape[1], device=real.device) == source.lengths[:, None] - 1
        ends = ((source.values == self.eos) | last) & real  # (B, T)
        tokens = source.values[real]  # (P,)
        stops = ends[real].nonzero()[:, 0] + 1  # (N,)
        lengths = stops.diff(prepend=stops.new_zeros(1))
        order, found = [], []
        for rows in groups(lengths):
            steps = torch.arange(int(lengths[rows].max()), device=rows.device)
            places = (stops - lengths)[rows, None] + steps  # (n, W): beyond a turn are tokens that are not read
            memory = self.encoder(Padded(tokens[places.clamp(max=len(tokens) - 1)], lengths[rows]))
            if memory.costs:
                raise ValueError("costs of the encoder of words are not supported: take cells and layers without")
            order.append(rows)
            found.append(memory.final["summary"])
        return torch.cat(found)[torch.cat(order).argsort()], ends.sum(1)


def groups(lengths: Tensor) -> Iterator[Tensor]:
    """Which turns are read side by side: of like length, so that less than half of what is read is padding.  (n,)"""
    ordered, rows = lengths.sort()
    sizes, begin = ordered.tolist(), 0
    while begin < len(sizes):
        limit = WIDER * sizes[begin]
        end = int(torch.searchsorted(ordered, limit, right=True))
        yield rows[begin:end]
        begin = end
