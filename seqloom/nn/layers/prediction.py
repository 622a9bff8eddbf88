"""The prediction network of a transducer: encodes the tokens written so far. Graves 2012, section 2.1."""

from collections.abc import Callable

from torch import Tensor, nn

from seqloom.arrays import maybe_any
from seqloom.contracts import Cell
from seqloom.nn.layers.recurrent import RecurrentStack
from seqloom.nn.ops.dropout import Dropout
from seqloom.types import Padded, State, hold


class PredictionNetwork(nn.Module):
    """A recurrent network over BOS and all tokens but blanks. State: {"layers": cells, "written": (rows, size)}."""

    def __init__(
        self,
        *,
        vocabulary: int,
        embedding_size: int,
        size: int,
        layers: int,
        cell: Callable[..., Cell],
        dropout: float,
    ):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, embedding_size)
        self.stack = RecurrentStack(cell=cell, input_size=embedding_size, size=size, layers=layers, dropout=dropout)
        self.dropout = Dropout(dropout)
        self.size = size

    def start(self, rows: int) -> State:
        return {"layers": self.stack.start(rows), "written": self.embedding.weight.new_zeros(rows, self.size)}

    def step(self, token: Tensor, is_blank: Tensor, state: State) -> State:
        """The state after another token; rows whose token is a blank keep theirs.  (rows,), (rows,)"""
        if not maybe_any(~is_blank):
            return state
        written, layers = self.stack.step(self.dropout(self.embedding(token)), state["layers"])
        return hold(is_blank, {"layers": layers, "written": self.dropout(written)}, state)

    def forward(self, inputs: Padded) -> Tensor:
        """The output after each input.  (rows, U) -> (rows, U, size)"""
        embedded = self.dropout(self.embedding(inputs.values))
        written, _ = self.stack.run(Padded(embedded, inputs.lengths), self.stack.start(len(inputs.lengths)))
        return self.dropout(written)
