"""Regression: one vector per source, W s + b, where s is the encoder's summary of the source.

It is the mean of a Gaussian, so that maximum likelihood is least squared error (Bishop 2006, section 5.2). Hochreiter &
Schmidhuber 1997 solve the adding problem in this way.
"""

from torch import Tensor, nn

from seqloom.contracts import Head
from seqloom.errors import SeqloomError
from seqloom.types import Memory, Output, Padded, State


class Value(Head):
    def __init__(self, *, memory_size: int, features: int):
        super().__init__(memory_size=memory_size)
        self.output = nn.Linear(memory_size, features)

    def forward(self, memory: Memory, inputs: Padded, state: State | None = None, attention: bool = False) -> Output:
        rows, length = inputs.values.shape[:2]
        if length != 1:
            raise SeqloomError(f"value outputs one vector per source, but a target has {length}: give one per target")
        summary: Tensor = memory.final["summary"]
        return Output(summary[memory.owner(rows), None], self.output, {})  # (rows, 1, memory_size)

    def answer(self, memory: Memory) -> Padded:
        return Padded(self.output(memory.final["summary"])[:, None], memory.lengths.new_ones(memory.rows))
