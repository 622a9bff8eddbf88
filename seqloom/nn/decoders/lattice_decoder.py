"""What transducers and SSNT share: the probability of an output is the sum over all paths through its lattice."""

from abc import abstractmethod

import torch
from torch import Tensor

from seqloom.contracts import Online
from seqloom.nn.layers.prediction import PredictionNetwork
from seqloom.nn.ops.lattice import all_paths, best_path
from seqloom.types import Memory, Padded, State


class LatticeDecoder(Online):
    """State: {"frame": (rows,), "prediction": of the network over the tokens written}. Subclasses define `lattice`."""

    eos: int
    trained_by = "marginal"
    prediction: PredictionNetwork

    @abstractmethod
    def lattice(self, memory: Memory, inputs: Padded, targets: Padded) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """The arguments of `all_paths`: log-probabilities to advance, write and end; numbers of states and labels."""

    def start(self, memory: Memory) -> State:
        frame = torch.full_like(memory.lengths, memory.offset)
        return {"frame": frame, "prediction": self.prediction.start(memory.rows)}

    def log_prob(self, memory: Memory, inputs: Padded, targets: Padded) -> Tensor:
        return all_paths(*self.lattice(memory, inputs, targets))

    def alignment(self, memory: Memory, inputs: Padded, targets: Padded) -> Tensor:
        """The state at which the likeliest alignment writes each token; -1 at padding.  (rows, U)"""
        return best_path(*self.lattice(memory, inputs, targets))
