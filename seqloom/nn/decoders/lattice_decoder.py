"""What transducers and SSNT share: an output's probability is that of all ways through its lattice."""

from abc import abstractmethod

import torch
from torch import Tensor

from seqloom.contracts import Online
from seqloom.nn.layers.prediction import Prediction
from seqloom.nn.ops.lattice import all_paths, best_path
from seqloom.types import Memory, Padded, State


class LatticeDecoder(Online):
    """State: {"frame": (rows,), "prediction": what has been written}. A subclass says what its lattice is."""

    eos: int
    trained_by = "marginal"
    prediction: Prediction

    @abstractmethod
    def lattice(self, memory: Memory, inputs: Padded, targets: Padded) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """What `all_paths` takes: to go on, to write, to end, and how many states and labels there are."""

    def start(self, memory: Memory) -> State:
        frame = torch.full_like(memory.lengths, memory.offset)
        return {"frame": frame, "prediction": self.prediction.start(memory.rows)}

    def log_prob(self, memory: Memory, inputs: Padded, targets: Padded) -> Tensor:
        return all_paths(*self.lattice(memory, inputs, targets))

    def alignment(self, memory: Memory, inputs: Padded, targets: Padded) -> Tensor:
        """At which state the likeliest alignment writes each token; -1 beyond a row's own.  (rows, U)"""
        return best_path(*self.lattice(memory, inputs, targets))
